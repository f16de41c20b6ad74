extern char __executable_start[], _end[];

#define _stext __executable_start
