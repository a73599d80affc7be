"""One line a check, in the form that the run script counts."""
import contextlib
import os
import sys
import urllib.parse

# What text must survive: one, two and three bytes of UTF-8, and a surrogate
# pair of UTF-16.
TEXT = "plain, äöü, 東京, €, 😀"


class Checks:
    def __init__(self, client):
        self._client = client
        self._failed = 0

    @contextlib.contextmanager
    def check(self, what):
        """What happens in the block is one check; an exception fails it."""
        try:
            yield
        except Exception as e:
            self._failed += 1
            why = " ".join(("%s: %s" % (type(e).__name__, e)).split())
            print("FAIL %s: %s: %s" % (self._client, what, why), flush=True)
        else:
            print("ok %s: %s" % (self._client, what), flush=True)

    def end(self):
        sys.exit(1 if self._failed else 0)


def expect(what, got, want):
    if got != want:
        raise AssertionError("%s: got %r, want %r" % (what, got, want))


def sql_script(name):
    """A statement of the folder sql, which all SQL clients share."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "..", "sql", name + ".sql"), encoding="utf-8") as f:
        return f.read()


def sql_server():
    """The address and login in OUTBOX_SQL_DSN."""
    return urllib.parse.urlsplit(os.environ["OUTBOX_SQL_DSN"])
