SHARED := scratch.c binder_link.c
