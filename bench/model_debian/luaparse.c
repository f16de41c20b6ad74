/* A long Lua program, compiled to byte code and not run. */
#include <stdio.h>

#include <lauxlib.h>
#include <lua.h>

#include "text.h"

enum { FUNCTIONS = 150 };

uint64_t work(uint64_t seed)
{
	static char text[600 * FUNCTIONS];
	uint64_t state = seed + 1, sum = 0;
	size_t end = 0;

	for (int i = 0; i < FUNCTIONS; i++) {
		char a[16] = {0}, b[16] = {0};
		text_spell(a, text_word(&state));
		text_spell(b, text_word(&state));
		end += (size_t)sprintf(
			text + end,
			"function f_%s(%s_1, n)\n  local x = {%u, '%s', [n] = n * %u + 1}\n"
			"  for i = 1, #x do if x[i] == %s_1 and n > %u then n = n - i // 2 end end\n"
			"  while n ~= 0 do n = n - 1 end -- %s\n  return function() return x, n .. '%s' end\nend\n",
			a, b, draw(&state) % 99, a, draw(&state) % 1000, b, draw(&state) % 50, a, b);
	}
	for (int i = 0; i < 3; i++) {
		lua_State *lua = luaL_newstate();
		sum += (uint64_t)luaL_loadbuffer(lua, text, end, "=text") + 1;
		sum += (uint64_t)lua_gc(lua, LUA_GCCOUNT);
		lua_close(lua);
	}
	return sum;
}
