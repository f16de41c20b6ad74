/* A program in Lua: tables, closures, strings and sorting. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "work.h"

static const char script[] =
	"local seed = ...\n"
	"local function draw() seed = (seed * 1103515245 + 12345) % 2147483648 return seed >> 8 end\n"
	"local words, count = {}, {}\n"
	"for i = 1, 1500 do words[i] = string.format('%x', draw() % 700) end\n"
	"for _, w in ipairs(words) do count[w] = (count[w] or 0) + 1 end\n"
	"local keys = {}\n"
	"for k in pairs(count) do keys[#keys + 1] = k end\n"
	"table.sort(keys, function(a, b)\n"
	"  if count[a] ~= count[b] then return count[a] > count[b] end return a < b end)\n"
	"local sum = 0\n"
	"for i, k in ipairs(keys) do sum = (sum * 31 + i * count[k] + #k) % 1000003 end\n"
	"local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end\n"
	"sum = sum + fib(13 + seed % 3)\n"
	"local text = table.concat(words, ' ')\n"
	"for a, b in text:gmatch('(%w+) (%w+)') do if a < b then sum = sum + #a end end\n"
	"local point = {} point.__index = point\n"
	"function point.new(x, y) return setmetatable({x = x, y = y}, point) end\n"
	"function point:add(o) return point.new(self.x + o.x, self.y ~ o.y) end\n"
	"local p = point.new(0, 0)\n"
	"for i = 1, 800 do p = p:add(point.new(draw() % 10, draw())) end\n"
	"return sum + p.x\n";

uint64_t work(uint64_t seed)
{
	lua_State *lua = luaL_newstate();

	luaL_openlibs(lua);
	luaL_loadstring(lua, script);
	lua_pushinteger(lua, (lua_Integer)(seed * 7919 + 1));
	lua_call(lua, 1, 1);
	const uint64_t sum = (uint64_t)lua_tointeger(lua, -1);
	lua_close(lua);
	return sum;
}
