"""Apache Qpid Proton: AMQP 1.0 in C, with no notion of Service Bus."""
import os
import re
import uuid

from proton import ConnectionException, Message, SSLDomain, int32, symbol, timestamp
from proton.reactor import Filter
from proton.utils import BlockingConnection, LinkDetached

from check import TEXT, Checks, expect

TIMEOUT = 20  # seconds


def endpoint(connection_string):
    """host:port and key of a connection string."""
    parts = dict(part.split("=", 1) for part in connection_string.split(";"))
    return re.sub("^sb://", "", parts["Endpoint"]).rstrip("/"), parts["SharedAccessKey"]


ADDRESS, KEY = endpoint(os.environ["CLIENTS_BUS"])
TLS_ADDRESS, _ = endpoint(os.environ["CLIENTS_BUS_TLS"])


def connect(key=KEY):
    return BlockingConnection("amqp://RootManageSharedAccessKey:%s@%s" % (key, ADDRESS),
                              allowed_mechs="PLAIN", timeout=TIMEOUT)


def connect_tls(trusted):
    domain = SSLDomain(SSLDomain.MODE_CLIENT)
    if trusted:
        domain.set_trusted_ca_db(trusted)
    domain.set_peer_authentication(SSLDomain.VERIFY_PEER_NAME)
    return BlockingConnection("amqps://RootManageSharedAccessKey:%s@%s" % (KEY, TLS_ADDRESS),
                              allowed_mechs="PLAIN", timeout=TIMEOUT, ssl_domain=domain)


def refused(condition, attach):
    try:
        attach()
    except LinkDetached as e:
        expect("condition", e.condition, condition)
    else:
        raise AssertionError("attached, where %s was due" % condition)


def main():
    checks = Checks("proton")
    bus = connect()
    sender = bus.create_sender("plain")

    with checks.check("a message arrives with its properties and annotations"):
        properties = {"text": TEXT, "whole": 2 ** 40, "int": int32(-7), "real": 1.5, "yes": True,
                      "uuid": uuid.UUID(int=1), "at": timestamp(1767323045678)}
        sender.send(Message(id="p-1", subject="order", content_type="application/json", correlation_id="c-1",
                            reply_to="answers", address="somewhere", ttl=60, properties=properties,
                            annotations={symbol("x-opt-partition-key"): "k"}, body=TEXT))
        receiver = bus.create_receiver("plain", credit=1)
        got = receiver.receive(timeout=TIMEOUT)
        expect("fields", (got.id, got.subject, got.content_type, got.correlation_id, got.reply_to, got.address, got.body),
               ("p-1", "order", "application/json", "c-1", "answers", "somewhere", TEXT))
        expect("ttl in s", got.ttl, 60)
        expect("properties", got.properties, properties)
        expect("types", {k: type(v) for k, v in got.properties.items()}, {k: type(v) for k, v in properties.items()})
        expect("partition key", got.annotations["x-opt-partition-key"], "k")
        for name in "x-opt-sequence-number", "x-opt-enqueued-time", "x-opt-locked-until":
            expect("annotation " + name, name in got.annotations, True)
        receiver.accept()
        receiver.close()
    with checks.check("a message of many frames, and bodies of any kind"):
        receiver = bus.create_receiver("plain", credit=1)
        for body in "x" * 200_000, b"\x00\xff", {"list": [1, 2, 3]}:
            sender.send(Message(body=body))
            expect("body", receiver.receive(timeout=TIMEOUT).body, body)
            receiver.accept()
        receiver.close()
    with checks.check("released: it comes again; rejected: it is a dead letter"):
        receiver = bus.create_receiver("plain", credit=1)
        sender.send(Message(id="given back", body="x"))
        expect("id", receiver.receive(timeout=TIMEOUT).id, "given back")
        receiver.release(delivered=True)
        again = receiver.receive(timeout=TIMEOUT)
        expect("again", (again.id, again.delivery_count), ("given back", 1))
        receiver.reject()
        dead = bus.create_receiver("plain/$deadletterqueue", credit=1)
        expect("dead letter", dead.receive(timeout=TIMEOUT).id, "given back")
        dead.accept()
        receiver.close()
        dead.close()
    with checks.check("a session is a filter on the source"):
        sessions = bus.create_sender("sessions")
        for i in range(6):
            sessions.send(Message(group_id="a" if i % 2 else "b", body=i))
        only = bus.create_receiver("sessions", credit=3, options=Filter({symbol("com.microsoft:session-filter"): "a"}))
        got = []
        for _ in range(3):
            got.append(only.receive(timeout=TIMEOUT).body)
            only.accept()
        expect("bodies", got, [1, 3, 5])
        only.close()
    with checks.check("an entity that is not there"):
        refused("amqp:not-found", lambda: bus.create_sender("nowhere"))
        refused("amqp:not-found", lambda: bus.create_receiver("nowhere"))
    with checks.check("a wrong key is refused"):
        try:
            connect("wrong").create_sender("plain")
        except (ConnectionException, LinkDetached):
            pass
        else:
            raise AssertionError("attached")
    with checks.check("TLS with the certificate checked; refused where nobody vouches for it"):
        secure = connect_tls(os.environ["CLIENTS_BUS_CERTIFICATE"])
        secure.create_sender("plain").send(Message(body="secret"))
        receiver = secure.create_receiver("plain", credit=1)
        expect("body", receiver.receive(timeout=TIMEOUT).body, "secret")
        receiver.accept()
        secure.close()
        try:
            connect_tls("/etc/ssl/certs/ca-certificates.crt").close()
        except ConnectionException as e:
            expect("certificate in %r" % str(e), "certificate" in str(e), True)
        else:
            raise AssertionError("connected")
    bus.close()
    checks.end()


if __name__ == "__main__":
    main()
