SHARED := main.c binder_link.c
