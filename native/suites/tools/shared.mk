# The program has its own main().
SHARED := scratch.c
