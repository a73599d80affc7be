# Exchanges messages with the emulator through Apache Qpid Proton, which shares
# no code with the Go library. Arguments: host:port and key. Any exception is a
# failure.
import base64
import hashlib
import hmac
import sys
import time
import urllib.parse

from proton import Message
from proton.utils import BlockingConnection, LinkDetached

host, key = sys.argv[1:]


def expect(what, got, want):
    assert got == want, "%s is %r, not %r" % (what, got, want)


def refused(attach, condition):
    try:
        attach()
    except LinkDetached as e:
        expect("condition", e.condition, condition)
    else:
        raise AssertionError("attached, where %s was due" % condition)


# SASL PLAIN is enough to be authorized.
plain = BlockingConnection("amqp://RootManageSharedAccessKey:%s@%s" % (key, host), allowed_mechs="PLAIN", timeout=20)
sender = plain.create_sender("q")
sender.send(Message(id="text", subject="s", body="text", properties={"a": 1}))
sender.send(Message(body={"list": [1, 2, 3]}))
sender.send(Message(id="large", body="x" * 200_000))
receiver = plain.create_receiver("q", credit=10)
first, second, third = (receiver.receive(timeout=20) for _ in range(3))
expect("subject", first.subject, "s")
expect("properties", first.properties, {"a": 1})
expect("body", second.body, {"list": [1, 2, 3]})
assert second.id, "a message without an id was given none"
expect("length", len(third.body), 200_000)
expect("sequence number", third.annotations["x-opt-sequence-number"], 3)
for _ in range(3):
    receiver.accept()

sender.send(Message(id="given back", body="x"))
receiver.receive(timeout=20)
receiver.release(delivered=False)
expect("released", receiver.receive(timeout=20).id, "given back")
receiver.reject()
dead = plain.create_receiver("q/$deadletterqueue", credit=1)
expect("dead letter", dead.receive(timeout=20).id, "given back")
dead.accept()

refused(lambda: plain.create_sender("nowhere"), "amqp:not-found")

# A request whose reply goes to the session's only receiver.
sender.send(Message(id="peeked", body="x"))
request = plain.create_sender("q/$management")
reply = plain.create_receiver("q/$management", credit=1)
request.send(Message(
    id="r1", properties={"operation": "com.microsoft:peek-message"},
    body={"from-sequence-number": 1, "message-count": 5}))
answer = reply.receive(timeout=20)
expect("status", answer.properties["statusCode"], 200)
expect("correlation id", answer.correlation_id, "r1")
expect("messages", len(answer.body["messages"]), 1)
plain.close()

# Without a password, a token is needed first.
anonymous = BlockingConnection("amqp://" + host, allowed_mechs="ANONYMOUS", timeout=20)
refused(lambda: anonymous.create_sender("q"), "amqp:unauthorized-access")
resource = urllib.parse.quote_plus("amqp://%s/q" % host)
expiry = str(int(time.time()) + 600)
digest = hmac.new(key.encode(), ("%s\n%s" % (resource, expiry)).encode(), hashlib.sha256).digest()
token = "SharedAccessSignature sr=%s&sig=%s&se=%s&skn=RootManageSharedAccessKey" % (
    resource, urllib.parse.quote_plus(base64.b64encode(digest)), expiry)
request = anonymous.create_sender("$cbs")
reply = anonymous.create_receiver("$cbs", credit=1)
request.send(Message(
    id="1", properties={"operation": "put-token", "type": "servicebus.windows.net:sastoken", "name": "amqp://%s/q" % host},
    body=token))
expect("status", reply.receive(timeout=20).properties["status-code"], 202)
anonymous.create_sender("q").send(Message(id="after", body="x"))
anonymous.close()
