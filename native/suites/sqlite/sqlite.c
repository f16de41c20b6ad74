/*
 * sqlite: a database on a file system of a block device. One load has many kinds of statements like
 * SQLite's speedtest1, another small transactions, which are what an application's thread waits
 * for.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../case.h"
#include "../scratch.h"

/* Rows of a table for each unit of the size parameter, as in speedtest1. */
#define ROWS_PER_SIZE 500

const char suite_name[] = "sqlite";

static sqlite3 *database;

static bool wrong(const char *what)
{
	char text[256];

	snprintf(text, sizeof(text), "%s: %s", what, database ? sqlite3_errmsg(database) : "");
	errno = 0;
	return fault(text);
}

static bool run_sql(const char *sql)
{
	return sqlite3_exec(database, sql, NULL, NULL, NULL) == SQLITE_OK || wrong(sql);
}

/* The single number that a query returns. */
static int64_t ask(const char *sql)
{
	sqlite3_stmt *statement;
	int64_t number = -1;

	if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
		wrong(sql);
		return -1;
	}
	if (sqlite3_step(statement) == SQLITE_ROW)
		number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return number;
}

/* A number that differs for each index, without repetition within a table. */
static uint32_t spread(uint32_t index, uint32_t rows)
{
	/* 7919 is prime, and does not divide any number of rows used here. */
	return (uint32_t)((uint64_t)index * 7919 % rows);
}

/* A number in words, so that texts have something to search for. */
static void spell(uint32_t number, char *text)
{
	static const char *const digits[] = {"zero", "one", "two",   "three", "four",
					     "five", "six", "seven", "eight", "nine"};
	char decimal[16];
	char *at = text;

	snprintf(decimal, sizeof(decimal), "%u", number);
	for (const char *digit = decimal; *digit != '\0'; digit++)
		at += sprintf(at, "%s%s", at == text ? "" : " ", digits[*digit - '0']);
}

static bool insert_rows(const char *table, uint32_t rows, bool in_order)
{
	char sql[128];
	char text[96];
	sqlite3_stmt *statement;
	bool sound = true;

	snprintf(sql, sizeof(sql), "INSERT INTO %s VALUES(?1,?2,?3)", table);
	if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK)
		return wrong(sql);
	for (uint32_t i = 0; sound && i < rows; i++) {
		const uint32_t number = spread(i, rows);
		spell(number, text);
		sqlite3_bind_int64(statement, 1, in_order ? i : number);
		sqlite3_bind_int64(statement, 2, number);
		sqlite3_bind_text(statement, 3, text, -1, SQLITE_STATIC);
		sound = sqlite3_step(statement) == SQLITE_DONE && sqlite3_reset(statement) == SQLITE_OK;
	}
	sqlite3_finalize(statement);
	return sound || wrong(sql);
}

/* Runs a prepared statement for many ranges of numbers; returns the sum of its first columns. */
static int64_t over_ranges(const char *sql, uint32_t rows, uint32_t times, uint32_t width)
{
	sqlite3_stmt *statement;
	int64_t sum = 0;

	if (sqlite3_prepare_v2(database, sql, -1, &statement, NULL) != SQLITE_OK) {
		wrong(sql);
		return -1;
	}
	for (uint32_t i = 0; i < times; i++) {
		const uint32_t from = (uint32_t)((uint64_t)i * rows / times);
		int step;
		sqlite3_bind_int64(statement, 1, from);
		sqlite3_bind_int64(statement, 2, from + width - 1);
		while ((step = sqlite3_step(statement)) == SQLITE_ROW)
			sum += sqlite3_column_int64(statement, 0);
		if (step != SQLITE_DONE) {
			wrong(sql);
			sum = -1;
			break;
		}
		sqlite3_reset(statement);
	}
	sqlite3_finalize(statement);
	return sum;
}

/* The expected sum of counts over those ranges, if no range exceeds the last row. */
static int64_t expected_rows(uint32_t rows, uint32_t times, uint32_t width)
{
	int64_t sum = 0;

	for (uint32_t i = 0; i < times; i++) {
		const uint32_t from = (uint32_t)((uint64_t)i * rows / times);
		sum += from + width <= rows ? width : rows - from;
	}
	return sum;
}

/* How many of the first numbers contain a digit: rows that LIKE must find. */
static int64_t with_digit(uint32_t rows, char digit)
{
	char decimal[16];
	int64_t count = 0;

	for (uint32_t i = 0; i < rows; i++) {
		snprintf(decimal, sizeof(decimal), "%u", i);
		count += strchr(decimal, digit) != NULL;
	}
	return count;
}

static bool same(const char *what, int64_t got, int64_t expected)
{
	errno = 0;
	return got == expected + damaged() || fault(what);
}

/* The load: three tables are filled, queried, indexed, changed, emptied and checked. */
static bool many_statements(uint32_t rows)
{
	const uint32_t width = rows / 10;

	return run_sql("BEGIN; CREATE TABLE plain(a INTEGER, b INTEGER, c TEXT)") &&
	       insert_rows("plain", rows, true) && run_sql("COMMIT") &&
	       run_sql("BEGIN; CREATE TABLE keyed(a INTEGER UNIQUE, b INTEGER, c TEXT)") &&
	       insert_rows("keyed", rows, true) && run_sql("COMMIT") &&
	       run_sql("BEGIN; CREATE TABLE mixed(a INTEGER UNIQUE, b INTEGER, c TEXT)") &&
	       insert_rows("mixed", rows, false) && run_sql("COMMIT") &&
	       same("rows by ranges", over_ranges("SELECT count(*) FROM plain WHERE b BETWEEN ?1 AND ?2",
						  rows, 10, width),
		    expected_rows(rows, 10, width)) &&
	       same("rows by text", ask("SELECT count(*) FROM plain WHERE c LIKE '%eight%'"),
		    with_digit(rows, '8')) &&
	       same("rows by order",
		    ask("SELECT count(*) FROM (SELECT a FROM plain WHERE c LIKE '%seven%' ORDER BY c)"),
		    with_digit(rows, '7')) &&
	       run_sql("BEGIN; CREATE INDEX plain_b ON plain(b); CREATE INDEX plain_c ON plain(c);"
		       "CREATE INDEX mixed_b ON mixed(b); COMMIT") &&
	       same("rows by an index", over_ranges("SELECT count(*) FROM plain WHERE b BETWEEN ?1 AND ?2",
						    rows, rows / 5, 10),
		    expected_rows(rows, rows / 5, 10)) &&
	       run_sql("BEGIN") &&
	       same("rows changed", over_ranges("UPDATE mixed SET b=b+1000000 WHERE a BETWEEN ?1 AND ?2 "
						"RETURNING 1",
						rows, 100, rows / 100),
		    rows) &&
	       run_sql("COMMIT") &&
	       same("the sum of what was changed", ask("SELECT sum(b-1000000) FROM mixed"),
		    (int64_t)rows * (rows - 1) / 2) &&
	       run_sql("BEGIN; UPDATE plain SET c=c||' again'; COMMIT") &&
	       same("texts changed", ask("SELECT count(*) FROM plain WHERE c LIKE '%again'"), rows) &&
	       same("rows of two tables",
		    ask("SELECT count(*) FROM plain JOIN keyed ON plain.b=keyed.a "
			"WHERE keyed.b < (SELECT max(a)/2 FROM mixed)"),
		    (rows - 1) / 2) &&
	       run_sql("BEGIN") &&
	       same("rows deleted",
		    over_ranges("DELETE FROM keyed WHERE a BETWEEN ?1 AND ?2 RETURNING 1", rows, 50,
				rows / 100),
		    50 * (int64_t)(rows / 100)) &&
	       run_sql("COMMIT; ANALYZE") &&
	       same("rows left", ask("SELECT count(*) FROM keyed"), rows - 50 * (int64_t)(rows / 100));
}

static bool open_database(const char *journal)
{
	char sql[64];

	if (!scratch_mount())
		return false;
	if (sqlite3_open("database", &database) != SQLITE_OK)
		return wrong("open a database");
	snprintf(sql, sizeof(sql), "PRAGMA journal_mode=%s", journal);
	return run_sql(sql) && run_sql("PRAGMA synchronous=FULL");
}

/* The data on the device must be sound, and not only that in memory. */
static bool close_database(const char *query, int64_t expected)
{
	bool sound = sqlite3_close(database) == SQLITE_OK || wrong("close a database");
	database = NULL;
	sound = sound && scratch_sync() &&
		(sqlite3_open("database", &database) == SQLITE_OK || wrong("open a database")) &&
		same("rows on the device", ask(query), expected) &&
		ask("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check='ok'") == 1;
	sqlite3_close(database);
	return scratch_unmount() && (sound || wrong("the integrity of a database"));
}

static bool run_speedtest(const struct suite_case *is, unsigned long operations)
{
	/* The size is the parameter; --scale reduces it. */
	const uint32_t size = (uint32_t)(operations < is->size ? operations : is->size);
	const uint32_t rows = size * ROWS_PER_SIZE;

	operations_done(size);
	if (!open_database("DELETE"))
		return false;
	measure_begin();
	const bool sound = many_statements(rows);
	measure_end();
	return close_database("SELECT count(*) FROM plain", rows) && sound;
}

/* Inserts rows from one number to before another, each in a transaction of its own. */
static bool insert_each(sqlite3_stmt *statement, unsigned long from, unsigned long to)
{
	char text[96];

	for (unsigned long i = from; i < to; i++) {
		const uint64_t began = now_ns();
		spell((uint32_t)i, text);
		sqlite3_bind_int64(statement, 1, (int64_t)i);
		sqlite3_bind_text(statement, 2, text, -1, SQLITE_STATIC);
		if (sqlite3_step(statement) != SQLITE_DONE || sqlite3_reset(statement) != SQLITE_OK)
			return wrong("insert a row");
		latency_note(now_ns() - began);
	}
	return true;
}

static bool commits(const char *journal, unsigned long operations)
{
	sqlite3_stmt *statement;
	const unsigned long warm = operations / 10 + 1;
	bool sound = open_database(journal) &&
		     run_sql("CREATE TABLE log(id INTEGER PRIMARY KEY, value INTEGER, text TEXT)") &&
		     (sqlite3_prepare_v2(database, "INSERT INTO log(value,text) VALUES(?1,?2)", -1,
					 &statement, NULL) == SQLITE_OK ||
		      wrong("prepare a statement")) &&
		     latencies_expect(operations) && insert_each(statement, 0, warm);

	if (!sound)
		return false;
	measure_begin();
	sound = insert_each(statement, warm, warm + operations);
	measure_end();
	sqlite3_finalize(statement);
	return close_database("SELECT count(*) FROM log", (int64_t)(warm + operations)) && sound;
}

static bool run_rollback(const struct suite_case *is, unsigned long operations)
{
	(void)is;
	return commits("DELETE", operations);
}

static bool run_wal(const struct suite_case *is, unsigned long operations)
{
	(void)is;
	return commits("WAL", operations);
}

const struct suite_case suite_cases[] = {
	{"speedtest", 20, 20, 1, run_speedtest},
	{"commit-rollback", 150, 0, 1, run_rollback},
	{"commit-wal", 300, 0, 1, run_wal},
};
const size_t suite_case_count = sizeof(suite_cases) / sizeof(suite_cases[0]);
