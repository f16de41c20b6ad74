/* A B+ tree of LMDB: keys put in, found, walked and deleted. */
#include <lmdb.h>
#include <stdio.h>
#include <unistd.h>

#include "text.h"

enum { KEYS = 1500, LOOKUPS = 6000 };

static MDB_val key_of(char *to, uint64_t *state)
{
	size_t length = text_spell(to, text_word(state));

	length += (size_t)sprintf(to + length, "%u", draw(state) % 8);
	return (MDB_val){length, to};
}

uint64_t work(uint64_t seed)
{
	static MDB_env *env;
	uint64_t state = seed + 1, sum = 0;
	char path[64], spelt[32];
	MDB_txn *txn;
	MDB_dbi dbi;
	MDB_cursor *cursor;
	MDB_val key, value;

	if (env == NULL) {
		snprintf(path, sizeof(path), "/tmp/lmdb.%d", (int)getpid());
		mdb_env_create(&env);
		mdb_env_set_mapsize(env, 8 << 20);
		mdb_env_open(env, path, MDB_NOSUBDIR | MDB_NOSYNC | MDB_WRITEMAP | MDB_NOLOCK, 0600);
		unlink(path);
	}
	mdb_txn_begin(env, NULL, 0, &txn);
	mdb_dbi_open(txn, NULL, 0, &dbi);
	mdb_drop(txn, dbi, 0);
	for (int i = 0; i < KEYS; i++) {
		key = key_of(spelt, &state);
		value = (MDB_val){sizeof(i), &i};
		mdb_put(txn, dbi, &key, &value, 0);
	}
	for (int i = 0; i < LOOKUPS; i++) {
		key = key_of(spelt, &state);
		if (mdb_get(txn, dbi, &key, &value) == 0)
			sum = sum * 31 + *(unsigned char *)value.mv_data;
	}
	mdb_cursor_open(txn, dbi, &cursor);
	while (mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0)
		sum += key.mv_size + *(unsigned char *)key.mv_data;
	mdb_cursor_close(cursor);
	mdb_txn_commit(txn);
	return sum;
}
