/*
 * jni: calls to a server in another process, from C and from Java in a JVM that this program
 * starts. An operation is a call and its answer. The cases differ in the transport and in the way
 * that parameters take from Java to C and back; Calls.java has a loop for each way.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <glob.h>
#include <jni.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../binder_link.h"
#include "../case.h"

#define WORDS 31
#define MOST (WORDS * sizeof(uint32_t))
#define LIBRARIES "/usr/lib/jvm/*/lib/server/libjvm.so"

const char suite_name[] = "jni";

/* Calls.java as compiled. */
extern const signed char calls_class[];
extern const unsigned calls_class_size;

/* Every byte of a message with its lowest bit changed, which leaves text text. */
static void answer(const unsigned char *message, size_t size, unsigned char *reply)
{
	for (size_t i = 0; i < size; i++)
		reply[i] = message[i] ^ 1;
	reply[0] ^= damaged();
}

/*
 * A way to the server and back: prepared before there is a server, and connected when it is ready.
 * `serve` is the server's side, which ends only with an error.
 */
struct transport {
	const char *name;
	bool (*prepare)(void);
	bool (*connect)(void);
	bool (*serve)(size_t size);
	bool (*call)(const void *message, size_t size, void *reply);
};

static _Atomic unsigned *ready;

/* none: the answer is made in this process, so that only the way to C and back is left. */

static bool call_nobody(const void *message, size_t size, void *reply)
{
	answer(message, size, reply);
	return true;
}

/* unix: a pair of stream sockets. */

static int ends[2];

static bool prepare_socket(void)
{
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
		unsupported("CONFIG_UNIX");
	return true;
}

static bool serve_socket(size_t size)
{
	unsigned char message[MOST];
	unsigned char reply[MOST];

	close(ends[0]);
	atomic_store(ready, 1);
	for (;;) {
		if (!read_all(ends[1], message, size))
			return fault("receive a message");
		answer(message, size, reply);
		if (!write_all(ends[1], reply, size))
			return fault("send an answer");
	}
}

static bool connect_socket(void)
{
	close(ends[1]);
	return true;
}

static bool call_socket(const void *message, size_t size, void *reply)
{
	return (write_all(ends[0], message, size) && read_all(ends[0], reply, size)) ||
	       fault("a call over the socket");
}

/* binder: the server is the context manager. */

static int device = -1;

static bool prepare_binder(void)
{
	close(binder_open());
	return true;
}

static bool service(uint32_t code, const void *request, size_t size, void *reply, size_t *reply_size)
{
	(void)code;
	answer(request, size, reply);
	*reply_size = size;
	return true;
}

static bool serve_binder(size_t size)
{
	(void)size;
	device = binder_open();
	if (!binder_map(device) || !binder_become_manager(device))
		return false;
	atomic_store(ready, 1);
	return binder_serve(device, service);
}

static bool connect_binder(void)
{
	device = binder_open();
	return binder_map(device);
}

static bool call_binder(const void *message, size_t size, void *reply)
{
	return binder_call(device, 1, message, size, reply, size);
}

static const struct transport transports[] = {
	{"none", NULL, NULL, NULL, call_nobody},
	{"unix", prepare_socket, connect_socket, serve_socket, call_socket},
	{"binder", prepare_binder, connect_binder, serve_binder, call_binder},
};
static const struct transport *over;

/*
 * A call whose message and answer stay in C. Only the ends of the message differ from call to call,
 * so that next to nothing is done beside the call.
 */

static size_t empty_size;
static unsigned char empty_message[MOST];

static bool call_once(void)
{
	unsigned char reply[MOST];
	const size_t last = empty_size - 1;

	empty_message[0]++;
	empty_message[last] += 3;
	if (!over->call(empty_message, empty_size, reply))
		return false;
	return (reply[0] == (empty_message[0] ^ 1) && reply[last] == (empty_message[last] ^ 1)) ||
	       fault("contents of an answer");
}

static bool call_from_c(unsigned long calls)
{
	for (unsigned long i = 0; i < calls; i++)
		if (!call_once())
			return false;
	return true;
}

/* The native methods of Calls.java. */

static uint32_t parcel[WORDS];
static unsigned at;

static jboolean native_call(JNIEnv *env, jclass class)
{
	(void)env, (void)class;
	return call_once();
}

static void native_reset(JNIEnv *env, jclass class)
{
	(void)env, (void)class;
	at = 0;
}

static void native_write_int(JNIEnv *env, jclass class, jint number)
{
	(void)env, (void)class;
	if (at < WORDS)
		parcel[at++] = (uint32_t)number;
}

static jboolean native_transact(JNIEnv *env, jclass class)
{
	uint32_t reply[WORDS];

	(void)env, (void)class;
	if (!over->call(parcel, sizeof(parcel), reply))
		return false;
	memcpy(parcel, reply, sizeof(parcel));
	at = 0;
	return true;
}

static jint native_read_int(JNIEnv *env, jclass class)
{
	(void)env, (void)class;
	return at < WORDS ? (jint)parcel[at++] : 0;
}

static jboolean native_call_ints(JNIEnv *env, jclass class, jintArray array)
{
	jint message[WORDS];
	jint reply[WORDS];

	(void)class;
	(*env)->GetIntArrayRegion(env, array, 0, WORDS, message);
	if (!over->call(message, sizeof(message), reply))
		return false;
	(*env)->SetIntArrayRegion(env, array, 0, WORDS, reply);
	return true;
}

static jboolean native_call_bytes(JNIEnv *env, jclass class, jbyteArray array)
{
	jbyte message[MOST];
	jbyte reply[MOST];

	(void)class;
	(*env)->GetByteArrayRegion(env, array, 0, MOST, message);
	if (!over->call(message, sizeof(message), reply))
		return false;
	(*env)->SetByteArrayRegion(env, array, 0, MOST, reply);
	return true;
}

static jstring native_call_string(JNIEnv *env, jclass class, jstring text)
{
	char message[MOST + 1];
	char reply[MOST + 1];

	(void)class;
	(*env)->GetStringUTFRegion(env, text, 0, MOST, message);
	if (!over->call(message, MOST, reply))
		return NULL;
	reply[MOST] = '\0';
	return (*env)->NewStringUTF(env, reply);
}

static const JNINativeMethod methods[] = {
	{"call", "()Z", native_call},
	{"reset", "()V", native_reset},
	{"writeInt", "(I)V", native_write_int},
	{"transact", "()Z", native_transact},
	{"readInt", "()I", native_read_int},
	{"callInts", "([I)Z", native_call_ints},
	{"callBytes", "([B)Z", native_call_bytes},
	{"callString", "(Ljava/lang/String;)Ljava/lang/String;", native_call_string},
};

static JavaVM *machine;
static JNIEnv *java;
static jclass calls_class_in_java;

/*
 * Bytecode is interpreted, and nothing that runs by time runs: no compiler, no sampling, no
 * periodic safepoint, no thread that looks after monitors. The heap is touched before, and so large
 * that it is never collected.
 */
static JavaVMOption options[] = {
	{"-Xint", NULL},
	{"-XX:+UseSerialGC", NULL},
	{"-Xms16m", NULL},
	{"-Xmx16m", NULL},
	{"-Xmn8m", NULL},
	{"-XX:+AlwaysPreTouch", NULL},
	{"-Xrs", NULL},
	{"-XX:-UsePerfData", NULL},
	{"-XX:+DisableAttachMechanism", NULL},
	{"-XX:+UnlockDiagnosticVMOptions", NULL},
	{"-XX:GuaranteedSafepointInterval=0", NULL},
	{"-XX:AsyncDeflationInterval=0", NULL},
};

static bool start_java(void)
{
	glob_t found;
	jint (*create)(JavaVM **, void **, void *);
	JavaVMInitArgs arguments = {
		.version = JNI_VERSION_10,
		.options = options,
		.nOptions = sizeof(options) / sizeof(options[0]),
		.ignoreUnrecognized = JNI_TRUE,
	};

	if (glob(LIBRARIES, 0, NULL, &found) != 0)
		unsupported("java");
	void *library = dlopen(found.gl_pathv[0], RTLD_NOW | RTLD_GLOBAL);
	globfree(&found);
	if (library == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return fault("load the JVM");
	}
	*(void **)&create = dlsym(library, "JNI_CreateJavaVM");
	if (create == NULL || create(&machine, (void **)&java, &arguments) != JNI_OK)
		return fault("start the JVM");
	calls_class_in_java = (*java)->DefineClass(java, "Calls", NULL, calls_class,
						   (jsize)calls_class_size);
	if (calls_class_in_java == NULL ||
	    (*java)->RegisterNatives(java, calls_class_in_java, methods,
				     sizeof(methods) / sizeof(methods[0])) != JNI_OK) {
		(*java)->ExceptionDescribe(java);
		return fault("define the class");
	}
	return true;
}

static bool call_from_java(jmethodID loop, unsigned long calls)
{
	const bool sound = (*java)->CallStaticBooleanMethod(java, calls_class_in_java, loop,
							    (jint)calls);

	if ((*java)->ExceptionCheck(java)) {
		(*java)->ExceptionDescribe(java);
		return fault("an exception");
	}
	return sound || fault("contents of an answer in Java");
}

static bool measure(const char *way, unsigned long operations)
{
	const unsigned long warm = operations / 10 + 2;
	jmethodID loop = NULL;

	/* Calls from C are made in a JVM's process, too: nothing else differs. */
	if (!start_java())
		return false;
	if (strcmp(way, "c") != 0) {
		loop = (*java)->GetStaticMethodID(java, calls_class_in_java, way, "(I)Z");
		if (loop == NULL)
			return fault("find the loop in Java");
	}
	/* The first calls link the methods. */
	if (!(loop != NULL ? call_from_java(loop, warm) : call_from_c(warm)))
		return false;
	measure_begin();
	const bool sound = loop != NULL ? call_from_java(loop, operations) : call_from_c(operations);
	measure_end();
	return sound;
}

static bool run(const struct suite_case *is, unsigned long operations)
{
	char names[2][8] = {"", ""};
	pid_t server = 0;

	sscanf(is->name, "%7[a-z]-%7[a-z]", names[0], names[1]);
	for (size_t i = 0; i < sizeof(transports) / sizeof(transports[0]); i++)
		if (strcmp(transports[i].name, names[0]) == 0)
			over = &transports[i];
	empty_size = is->size;
	pattern(empty_message, empty_size, 3);
	if (over->serve != NULL) {
		ready = shared_memory(sizeof(*ready));
		/* The child is made before the JVM, whose threads it would not have. */
		server = over->prepare() ? fork_child() : -1;
		if (server < 0)
			return false;
		if (server == 0)
			leave(over->serve(is->size));
		if (!await_child(server, ready, 1) || !over->connect())
			return false;
	}
	const bool sound = measure(names[1], operations);
	return (server == 0 || end_child(server)) && sound;
}

#define CALLS 3000
#define FROM_JAVA(over)                                                                        \
	{over "-empty-4", CALLS, 4, 1, run}, {over "-empty-124", CALLS, 124, 1, run},          \
		{over "-ints-124", CALLS, 124, 1, run}, {over "-array-124", CALLS, 124, 1, run}, \
		{over "-bytes-124", CALLS, 124, 1, run}, {over "-string-124", CALLS, 124, 1, run}
#define ALL(over)                                                                     \
	{over "-c-4", CALLS, 4, 1, run}, {over "-c-124", CALLS, 124, 1, run}, FROM_JAVA(over)

const struct suite_case suite_cases[] = {FROM_JAVA("none"), ALL("unix"), ALL("binder")};
const size_t suite_case_count = sizeof(suite_cases) / sizeof(suite_cases[0]);
