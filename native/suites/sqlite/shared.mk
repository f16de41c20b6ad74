SHARED := main.c scratch.c
