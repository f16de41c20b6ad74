# The program starts a JVM in its own process, so it has the C library of the JVM. The class is inside
# of it; the JVM, with as much of Java as the class needs, is in jni.tree.
FLAGS := $(filter-out -static,$(FLAGS)) -Wl,--no-as-needed
JDK := $(dir $(realpath $(shell command -v javac)))..
FLAGS += -I$(JDK)/include -I$(JDK)/include/linux
SHARED := main.c binder_link.c $(OUT)/calls_class.c
RUNTIME := $(OUT)/jni.tree/usr/lib/jvm/java

$(OUT)/jni: $(RUNTIME)/lib/server/classes.jsa

# With the classes that a JVM starts with as they are in memory, for a faster start. That file has the
# time at which the modules were written, which in a guest is the epoch, and some of the addresses at
# which the JVM ran, which are the same each time where they may be fixed.
FIXED := $(shell setarch -R true 2>/dev/null && echo setarch -R)
$(RUNTIME)/lib/server/classes.jsa:
	rm -rf $(RUNTIME)
	mkdir -p $(dir $(RUNTIME))
	$(JDK)/bin/jlink --add-modules java.base --strip-java-debug-attributes --no-header-files \
	    --no-man-pages --compress=2 --output $(RUNTIME)
	touch --date=@0 $(RUNTIME)/lib/modules
	$(RUNTIME)/bin/java -Xshare:off -XX:DumpLoadedClassList=$(OUT)/started --version >/dev/null
	$(FIXED) $(RUNTIME)/bin/java -Xlog:disable -XX:+UseSerialGC -Xmx16m \
	    -XX:SharedClassListFile=$(OUT)/started -Xshare:dump

$(OUT)/calls_class.c: jni/Calls.java | $(OUT)
	javac --release 11 -g:none -Xlint:all $(if $(MEPOF_STRICT),-Werror) -d $(OUT) $<
	{ echo 'const signed char calls_class[] = {'; \
	  od -An -v -td1 $(OUT)/Calls.class | sed 's/ *\([-0-9][0-9]*\)/\1,/g'; \
	  echo '}; const unsigned calls_class_size = sizeof(calls_class);'; } >$@
