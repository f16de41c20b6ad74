/* Where Debian's Lua looks for modules; none is loaded. */
#define DEB_HOST_MULTIARCH "none"
