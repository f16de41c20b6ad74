/* A program in JavaScript: objects, closures, regular expressions and JSON. */
#include <stdio.h>

#include <mujs.h>

#include "work.h"

static const char script[] =
	"function draw() { seed = (seed * 16807) % 2147483647; return seed; }\n"
	"var count = {}, list = [], sum = 0;\n"
	"for (var i = 0; i < 500; i++) { var w = 'k' + draw() % 90; count[w] = (count[w] || 0) + 1; list.push(w); }\n"
	"list.sort(function (a, b) { return count[b] - count[a] || (a < b ? -1 : a > b ? 1 : 0); });\n"
	"list.forEach(function (w, i) { sum = (sum * 31 + i * count[w]) % 1000003; });\n"
	"function Node(l, r) { this.l = l; this.r = r; }\n"
	"Node.prototype.depth = function () { return 1 + Math.max(this.l ? this.l.depth() : 0, this.r ? this.r.depth() : 0); };\n"
	"function grow(n) { return n == 0 ? null : new Node(grow(draw() % n), grow(n - 1)); }\n"
	"sum += grow(8).depth();\n"
	"var text = list.join(' ');\n"
	"sum += text.replace(/k([0-9])([0-9]?)/g, '$2$1').length;\n"
	"sum += JSON.stringify(JSON.parse(JSON.stringify(count))).length;\n";

uint64_t work(uint64_t seed)
{
	js_State *js = js_newstate(NULL, NULL, JS_STRICT);
	char first[48];

	snprintf(first, sizeof(first), "var seed = %u;", (unsigned)(seed * 7919 % 100000 + 1));
	js_dostring(js, first);
	js_dostring(js, script);
	js_getglobal(js, "sum");
	const uint64_t sum = (uint64_t)js_tonumber(js, -1);
	js_freestate(js);
	return sum;
}
