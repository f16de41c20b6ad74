#include "pcre2.h.generic"
