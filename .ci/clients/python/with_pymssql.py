"""pymssql: TDS as FreeTDS's db-lib speaks it."""
import os
import tempfile
import threading

import pymssql

from check import TEXT, Checks, expect, sql_script, sql_server

OWNER = TYPE = "clients.pymssql"
SERVER = sql_server()
DECLARE_TYPE = "DECLARE @event_type VARCHAR(100) = %s, @owner VARCHAR(100) = %s\n"


def connect(password=SERVER.password):
    # No tds_version: the protocol is what client and server agree on.
    return pymssql.connect(server=SERVER.hostname, port=str(SERVER.port), user=SERVER.username,
                           password=password, database=SERVER.path.strip("/") or "outbox", login_timeout=20)


def rows(connection, query, params=()):
    with connection.cursor() as cursor:
        cursor.execute(query, params)
        return cursor.fetchall()


def run(connection, statement, params=()):
    with connection.cursor() as cursor:
        cursor.execute(statement, params)


def refused(number, act):
    try:
        act()
    except pymssql.Error as e:
        # A login's error wraps the number and the text in one more tuple.
        got = e.args[0][0] if isinstance(e.args[0], tuple) else e.args[0]
        expect("error number of %r" % (e,), got, number)
    else:
        raise AssertionError("went through, where error %d was due" % number)


def block(connection):
    """The first of 50 ids that are ours."""
    (first,), = rows(connection, "SELECT NEXT VALUE FOR dbo.outbox_event_seq")
    connection.commit()
    return first


INSERT = ("INSERT INTO dbo.outbox_event (id, aggregate_type, aggregate_id, event_type, payload)"
          " VALUES (%s, 'order', %s, %s, %s)")


def claim(connection, batch, start):
    """The ids from start on of a claim whose transaction is left open."""
    query = "DECLARE @batch INT = %s, @event_type VARCHAR(100) = %s, @from BIGINT = %s\n" + sql_script("claim")
    return [row[0] for row in rows(connection, query, (batch, TYPE, start))]


def flip(connection, ids):
    query = "DECLARE @ids VARCHAR(MAX) = %s\n" + DECLARE_TYPE + sql_script("flip")
    (flipped,), = rows(connection, query, (str(ids), TYPE, OWNER))
    connection.commit()
    return flipped


def deadlock(a, b, first, second):
    """The error numbers of two transactions that lock two rows crosswise."""
    touch = "UPDATE dbo.outbox_event SET retry_count = retry_count + 1 WHERE id = %s"
    run(a, touch, (first,))
    run(b, touch, (second,))
    victims = []

    def cross(connection, row):
        try:
            run(connection, touch, (row,))
        except pymssql.Error as e:
            victims.append(e.args[0])
        connection.rollback()

    threads = [threading.Thread(target=cross, args=pair) for pair in ((a, second), (b, first))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return victims


def main():
    checks = Checks("pymssql")
    with checks.check("a wrong password is refused with 18456"):
        refused(18456, lambda: connect("wrong"))

    a, b = connect(), connect()
    with checks.check("create rows and claim them on two connections at once: disjoint"):
        first = block(a)
        with a.cursor() as cursor:
            cursor.executemany(INSERT, [(i, str(i), TYPE, "{}") for i in range(first, first + 10)])
        a.commit()
        mine, theirs = claim(a, 5, first), claim(b, 5, first)
        expect("first claim", mine, list(range(first, first + 5)))
        expect("second claim", theirs, list(range(first + 5, first + 10)))
        expect("flipped", (flip(a, mine), flip(b, theirs)), (5, 5))
        expect("rows tied to receipts", rows(a, DECLARE_TYPE + sql_script("flipped"), (TYPE, OWNER)), [(10,)])
        a.rollback()
    with checks.check("a claim that is rolled back leaves its rows"):
        row = block(a)
        run(a, INSERT, (row, "1", TYPE, "{}"))
        a.commit()
        expect("claim", claim(a, 5, row), [row])
        a.rollback()
        expect("claim after a rollback", claim(b, 5, row), [row])
        expect("flipped", flip(b, [row]), 1)
    with checks.check("a duplicate key is 2627"):
        refused(2627, lambda: run(a, INSERT, (first, "1", TYPE, "{}")))
        a.rollback()
    with checks.check("a deadlock is 1205 for one of two"):
        expect("errors", deadlock(a, b, first, first + 1), [1205])
        kept = rows(a, "SELECT SUM(retry_count) FROM dbo.outbox_event WHERE id IN (%s, %s)", (first, first + 1))
        expect("updates left after both rolled back", kept, [(0,)])
        a.rollback()
    with checks.check("text beyond ASCII comes back"):
        row = block(a)
        run(a, INSERT, (row, "1", TYPE, TEXT))
        a.commit()
        got = rows(a, "SELECT CONVERT(NVARCHAR(2000), payload) FROM dbo.outbox_event WHERE id = %s", (row,))
        expect("text", got, [(TEXT,)])
        a.rollback()
    with checks.check("events enqueued by the stored procedure, text and all"):
        with a.cursor() as cursor:
            cursor.callproc("dbo.outbox_event_enqueue", (
                '[{"aggregate_type": "order", "aggregate_id": "7", "event_type": "clients.pymssql.enqueued",'
                ' "payload": "%s"}]' % TEXT,))
            while cursor.nextset():
                pass
        a.commit()
        got = rows(b, "SELECT aggregate_id, CONVERT(NVARCHAR(2000), payload) FROM dbo.outbox_event"
                      " WHERE event_type = 'clients.pymssql.enqueued' AND status = 0")
        expect("rows", got, [("7", TEXT)])
        b.rollback()
    # pymssql hands the bytes of a str to db-lib as they are, whatever the column,
    # so only VARCHAR takes them.
    with checks.check("bulk load"):
        run(a, "CREATE TABLE dbo.loaded_by_pymssql (id BIGINT NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL,"
               " number INT NULL)")
        a.commit()
        a.bulk_copy("dbo.loaded_by_pymssql", [(i, "row %d" % i, None if i % 2 else i) for i in range(1, 1001)],
                    batch_size=300)
        a.commit()
        got = rows(a, "SELECT COUNT(*), SUM(id), MIN(name), COUNT(number), SUM(number) FROM dbo.loaded_by_pymssql")
        expect("rows", got, [(1000, 500500, "row 1", 500, 250500)])
        a.rollback()
    a.close()
    b.close()
    checks.end()


if __name__ == "__main__":
    # db-lib reads what encryption to ask for from a file only.
    with tempfile.NamedTemporaryFile("w", suffix=".conf") as conf:
        conf.write("[global]\n\tclient charset = UTF-8\n\tencryption = require\n")
        conf.flush()
        os.environ["FREETDSCONF"] = conf.name
        main()
