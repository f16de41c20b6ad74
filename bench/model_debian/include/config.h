/* PCRE2's configuration: its own defaults. */
#include "config.h.generic"
