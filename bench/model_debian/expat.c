/* XML with attributes and entities, parsed by Expat. */
#include <stdio.h>

#include <expat.h>

#include "text.h"

enum { ELEMENTS = 400 };
static uint64_t seen;

static void started(void *data, const XML_Char *name, const XML_Char **attributes)
{
	(void)data;
	for (seen += strlen(name); *attributes != NULL; attributes++)
		seen = seen * 31 + (unsigned char)**attributes;
}

static void ended(void *data, const XML_Char *name)
{
	(void)data;
	seen = seen * 7 + (unsigned char)name[0];
}

static void characters(void *data, const XML_Char *text, int length)
{
	(void)data;
	seen += (unsigned)length + (unsigned char)text[0];
}

uint64_t work(uint64_t seed)
{
	static char text[220 * ELEMENTS];
	uint64_t state = seed + 1;
	size_t end = (size_t)sprintf(text, "<?xml version=\"1.0\"?>\n<root>");

	for (int i = 0; i < ELEMENTS; i++) {
		char name[16] = {0}, other[16] = {0};
		text_spell(name, text_word(&state));
		text_spell(other, text_word(&state));
		end += (size_t)sprintf(text + end, "<%s id='%u' kind=\"%s\">%s &amp; %s<!-- %s --><e/>\n</%s>",
				       name, draw(&state) % 999, other, other, name, other, name);
	}
	end += (size_t)sprintf(text + end, "</root>");
	seen = 0;
	for (int i = 0; i < 4; i++) {
		XML_Parser parser = XML_ParserCreateNS(NULL, ':');
		XML_SetHashSalt(parser, 1);
		XML_SetElementHandler(parser, started, ended);
		XML_SetCharacterDataHandler(parser, characters);
		XML_Parse(parser, text, (int)end, 1);
		XML_ParserFree(parser);
	}
	return seen;
}
