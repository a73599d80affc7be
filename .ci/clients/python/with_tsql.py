"""FreeTDS's tsql and freebcp: TDS as libtds speaks it, batches only.

tsql is driven through pipes, so that two of them can hold transactions at the
same time. What a batch printed is read up to a marker that is selected after it.
"""
import os
import re
import subprocess
import tempfile

from check import TEXT, Checks, expect, sql_script, sql_server

OWNER = TYPE = "clients.tsql"
SERVER = sql_server()


class Refused(Exception):
    """A message of severity 11 or more."""

    def __init__(self, number, text):
        super().__init__("Msg %d: %s" % (number, text))
        self.number = number


class Session:
    def __init__(self, conf, password=SERVER.password):
        self._tsql = subprocess.Popen(
            ["stdbuf", "-oL", "-eL", "tsql", "-H", SERVER.hostname, "-p", str(SERVER.port),
             "-U", SERVER.username, "-P", password, "-o", "fhq", "-t", "|"],
            env=dict(os.environ, FREETDSCONF=conf), encoding="utf-8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self._batches = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._tsql.stdin.close()
        self._tsql.stdout.close()
        self._tsql.wait(timeout=20)

    def send(self, batch):
        """Starts a batch and does not wait for it."""
        self._batches += 1
        self._tsql.stdin.write("%s\ngo\nSELECT 'end of %d'\ngo\n" % (batch, self._batches))
        self._tsql.stdin.flush()

    def receive(self):
        """The rows of the batch that was sent, each a list of strings."""
        rows, error = [], None
        for line in self._tsql.stdout:
            line = line.rstrip("\n")
            if line == "end of %d" % self._batches:
                if error:
                    raise error
                return rows
            message = re.match(r"Msg (\d+) \(severity (\d+),", line)
            if message:
                text = next(self._tsql.stdout).strip()
                if int(message[2]) > 10 and error is None:
                    error = Refused(int(message[1]), text)
            elif line:
                rows.append(line.split("|"))
        raise EOFError("tsql ended: %r" % rows)

    def run(self, batch):
        self.send(batch)
        return self.receive()


def refused(number, batch, session):
    try:
        session.run(batch)
    except Refused as e:
        expect("error number", e.number, number)
    else:
        raise AssertionError("went through, where error %d was due" % number)


def insert(session, first, count, payload="N'{}'"):
    for i in range(first, first + count):
        session.run("INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload)"
                    " VALUES (%d, 'order', '%d', '%s', %s)" % (i, i, TYPE, payload))


def block(session):
    """The first of 50 ids that are ours."""
    return int(session.run("SELECT NEXT VALUE FOR dbo.outbox_event_seq")[0][0])


def claim(session, batch, start):
    """The ids from start on of a claim whose transaction is left open."""
    rows = session.run(
        "SET XACT_ABORT ON\nSET TRANSACTION ISOLATION LEVEL READ COMMITTED\nBEGIN TRANSACTION\n"
        "DECLARE @batch INT = %d, @event_type VARCHAR(100) = '%s', @from BIGINT = %d\n%s"
        % (batch, TYPE, start, sql_script("claim")))
    return [int(row[0]) for row in rows]


def flip(session, ids):
    rows = session.run(
        "DECLARE @ids VARCHAR(MAX) = '%s', @event_type VARCHAR(100) = '%s', @owner VARCHAR(100) = '%s'\n%s"
        % (ids, TYPE, OWNER, sql_script("flip")))
    session.run("COMMIT")
    return int(rows[0][0])


def conf(folder, encryption, more=""):
    path = os.path.join(folder, encryption + str(len(more)) + ".conf")
    with open(path, "w", encoding="utf-8") as f:
        f.write("[global]\n\ttds version = auto\n\tclient charset = UTF-8\n\tencryption = %s\n%s"
                % (encryption, more))
    return path


def log_in(conf_file, password=SERVER.password):
    """The exit code and what was said by a tsql that only asks for 1."""
    tsql = subprocess.run(
        ["tsql", "-H", SERVER.hostname, "-p", str(SERVER.port), "-U", SERVER.username, "-P", password, "-o", "fhq"],
        input="SELECT 1\ngo\n", env=dict(os.environ, FREETDSCONF=conf_file),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=60)
    return tsql.returncode, tsql.stdout


def freebcp(conf_file, table, data, *options):
    """The exit code and what was said by a bulk load of a file in batches of 300."""
    bcp = subprocess.run(
        ["freebcp", table, "in", data, "-c", "-t", "|", "-b", "300", *options,
         "-S", "%s:%d" % (SERVER.hostname, SERVER.port), "-U", SERVER.username, "-P", SERVER.password],
        env=dict(os.environ, FREETDSCONF=conf_file), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        encoding="utf-8", timeout=60)
    return bcp.returncode, bcp.stdout


def main(folder):
    checks = Checks("tsql")
    tls = conf(folder, "require")

    with checks.check("log in with TLS required"):
        expect("answer", log_in(tls), (0, "1\n"))
    with checks.check("log in without TLS"):
        expect("answer", log_in(conf(folder, "off")), (0, "1\n"))
    with checks.check("TLS is real: nobody signed the certificate, so a client that checks it refuses"):
        code, said = log_in(conf(folder, "require", "\tca file = system\n"))
        expect("logged in, and said %r" % said, code == 0, False)
        expect("refused by the server", "Msg" in said, False)
    with checks.check("a wrong password is refused with 18456"):
        code, said = log_in(tls, "wrong")
        expect("logged in, and said %r" % said, code == 0, False)
        expect("18456 in %r" % said, "Msg 18456" in said, True)

    with Session(tls) as a, Session(tls) as b:
        with checks.check("create rows and claim them on two connections at once: disjoint"):
            first = block(a)
            insert(a, first, 10)
            mine, theirs = claim(a, 5, first), claim(b, 5, first)
            expect("first claim", mine, list(range(first, first + 5)))
            expect("second claim", theirs, list(range(first + 5, first + 10)))
            expect("flipped", (flip(a, mine), flip(b, theirs)), (5, 5))
            tied = a.run("DECLARE @event_type VARCHAR(100) = '%s', @owner VARCHAR(100) = '%s'\n%s"
                         % (TYPE, OWNER, sql_script("flipped")))
            expect("rows tied to receipts", tied, [["10"]])
        with checks.check("a duplicate key is 2627"):
            refused(2627, "INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload)"
                          " VALUES (%d, 'order', '1', '%s', '')" % (first, TYPE), a)
        with checks.check("a deadlock is 1205 for one of two"):
            touch = "UPDATE dbo.outbox_event SET retry_count = retry_count + 1 WHERE id = %d"
            for session, row in (a, first), (b, first + 1):
                session.run("BEGIN TRANSACTION\n" + touch % row)
            a.send(touch % (first + 1))
            b.send(touch % first)
            victims = []
            for session in a, b:
                try:
                    session.receive()
                except Refused as e:
                    victims.append(e.number)
                    expect("@@TRANCOUNT of the victim", session.run("SELECT @@TRANCOUNT"), [["0"]])
                else:
                    session.run("ROLLBACK")
            expect("errors", victims, [1205])
            kept = a.run("SELECT SUM(retry_count) FROM dbo.outbox_event WHERE id IN (%d, %d)" % (first, first + 1))
            expect("updates left after both rolled back", kept, [["0"]])
        with checks.check("text beyond ASCII comes back"):
            row = block(a)
            insert(a, row, 1, "N'%s'" % TEXT)
            got = a.run("SELECT CONVERT(NVARCHAR(2000), payload) FROM dbo.outbox_event WHERE id = %d" % row)
            expect("text", got, [[TEXT]])
        with checks.check("QUOTED_IDENTIFIER OFF may not write a table with filtered indexes: 1934"):
            a.run("SET QUOTED_IDENTIFIER OFF")
            refused(1934, "INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload)"
                          " VALUES (%d, 'order', '1', '%s', '')" % (block(b), TYPE), a)
            a.run("SET QUOTED_IDENTIFIER ON")

        with checks.check("bulk load with freebcp"):
            a.run("CREATE TABLE dbo.loaded_by_freebcp (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL,"
                  " text NVARCHAR(100) NULL, at DATETIME2(3) NULL)")
            data = os.path.join(folder, "rows")
            with open(data, "w", encoding="utf-8") as f:
                for i in range(1, 1001):
                    f.write("%d|row %d|%s|2026-01-02 03:04:05.678\n" % (i, i, TEXT))
            code, said = freebcp(tls, "dbo.loaded_by_freebcp", data)
            expect("exit code of freebcp, which said %r" % said, code, 0)
            got = a.run("SELECT COUNT(*), SUM(id), MIN(name), MIN(text), MAX(CONVERT(VARCHAR(30), at, 121))"
                        " FROM dbo.loaded_by_freebcp")
            expect("rows", got, [["1000", "500500", "row 1", TEXT, "2026-01-02 03:04:05.678"]])
        with checks.check("bulk load of the outbox: 1934 with db-lib's own options, rows with those it needs"):
            row = block(a)
            data = os.path.join(folder, "events")
            with open(data, "w", encoding="utf-8") as f:
                f.write("%d|order|1|%s|{}||0|2026-01-02 03:04:05.678|||0|\n" % (row, TYPE))
            code, said = freebcp(tls, "dbo.outbox_event", data)
            expect("1934 in %r" % said, "Msg 1934" in said, True)
            code, said = freebcp(tls, "dbo.outbox_event", data, "-O",
                                 "SET ANSI_NULLS, ANSI_PADDING, ANSI_WARNINGS, ARITHABORT,"
                                 " CONCAT_NULL_YIELDS_NULL, QUOTED_IDENTIFIER ON")
            expect("exit code of freebcp, which said %r" % said, code, 0)
            expect("claim", claim(b, 5, row), [row])
            expect("flipped", flip(b, [row]), 1)
    checks.end()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(folder)
