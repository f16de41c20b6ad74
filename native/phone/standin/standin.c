/*
 * Android's am, pm, input, uiautomator, monkey, getevent, dumpsys and wm, as far as scenarios use
 * them, for apps that are described (app.c). docs/android.md has what is assumed of the real ones.
 *
 * The programs are links to this one. Under an app's package it is the app's process. `finger X Y` is
 * a person who touches the screen: what it does is also an event that getevent writes.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "standin.h"

#define LAUNCHER "com.android.launcher3"
#define PERMISSIONS "com.android.permissioncontroller"
#define DEVICE "/dev/input/event2"
#define AXIS_MAX 32767

static struct app app;
static struct state state;

void load_state(struct state *loaded)
{
	memset(loaded, 0, sizeof(*loaded));
	strcpy(loaded->over, "home");
	FILE *file = fopen(path_of("tmp/android/state"), "r");
	if (!file)
		return;
	if (fread(loaded, sizeof(*loaded), 1, file) != 1)
		strcpy(loaded->over, "home");
	fclose(file);
	if (loaded->package[0] && !load_app(loaded->package, &app))
		strcpy(loaded->over, "home");
}

void save_state(const struct state *saved)
{
	const char *name = path_of("tmp/android/state"), *fresh = path_of("tmp/android/state.new");
	FILE *file = fopen(fresh, "w");

	if (!file || fwrite(saved, sizeof(*saved), 1, file) != 1 || fclose(file) != 0 ||
	    rename(fresh, name) != 0)
		perror(name);
}

static bool is_over(const char *what)
{
	return strcmp(state.over, what) == 0;
}

static void lay_over(const char *what)
{
	snprintf(state.over, sizeof(state.over), "%s", what);
}

static void go_home(void)
{
	state.depth = 0;
	state.package[0] = '\0';
	lay_over("home");
}

/* What becomes of an app whose process was told to crash, hang or exit. */
static void end(const char *how)
{
	tell_process(state.package, how);
	lay_over(strcmp(how, "@exit") == 0 ? "home" : how + 1);
}

static void show(const char *name)
{
	const struct screen *screen = screen_of(&app, name);

	if (!screen || state.depth == MAX_STACK)
		return;
	snprintf(state.stack[state.depth++], MAX_NAME, "%s", name);
	lay_over("");
	if (screen->enter[0] == '@')
		end(screen->enter);
	else if (!tell_process(state.package, name))
		lay_over(is_alive(state.package) ? "anr" : "crash");
}

static bool launch(const char *package)
{
	if (!load_app(package, &app) || !start_process(package))
		return false;
	snprintf(state.package, sizeof(state.package), "%s", package);
	state.depth = 0;
	show(app.screens[0].name);
	return true;
}

static void stop(const char *package)
{
	stop_process(package);
	if (strcmp(state.package, package) == 0)
		go_home();
}

static void back(void)
{
	if (is_over("ask")) {
		lay_over("");
	} else if (is_over("") && state.depth > 1) {
		char below[MAX_NAME];
		state.depth -= 2;
		strcpy(below, state.stack[state.depth]);
		show(below);
	} else if (is_over("")) {
		lay_over("home");
	}
}

/* Elements of the system's own screens. */
static const struct element home[] = {{"TextView", "icon", "-", "Apps"}};
static const struct element asking[] = {
	{"Button", "permission_allow_button", "-", "Allow"},
	{"Button", "permission_deny_button", "-", "Don't allow"}};
static struct element dialog[] = {{"TextView", "alertTitle", "none", ""},
				  {"Button", "aerr_close", "-", "Close app"},
				  {"Button", "aerr_wait", "-", "Wait"}};

/* What is shown now, and the package that shows it. */
static int shown(const struct element **elements, const char **package)
{
	if (is_over("crash") || is_over("anr")) {
		bool crash = is_over("crash");
		snprintf(dialog[0].text, MAX_NAME, "%.40s %s", state.package,
			 crash ? "has stopped" : "isn't responding");
		*elements = dialog;
		*package = "android";
		return crash ? 2 : 3;
	}
	if (is_over("ask")) {
		*elements = asking;
		*package = PERMISSIONS;
		return 2;
	}
	const struct screen *screen =
		state.depth ? screen_of(&app, state.stack[state.depth - 1]) : NULL;
	if (is_over("home") || !screen) {
		*elements = home;
		*package = LAUNCHER;
		return 1;
	}
	*elements = &app.elements[screen->element];
	*package = state.package;
	return screen->elements;
}

static void tap(int x, int y)
{
	const struct element *elements;
	const char *package;
	int count = shown(&elements, &package);

	if (x < 0 || x >= WIDTH || y < TOP || (y - TOP) / ROW >= count)
		return;
	const struct element *element = &elements[(y - TOP) / ROW];
	if (elements == dialog) {
		if (strcmp(element->name, "aerr_close") == 0)
			stop(state.package);
	} else if (elements == asking) {
		lay_over("");
		if (element == asking)
			show(state.asked);
	} else if (elements == home) {
		return;
	} else if (strcmp(element->target, "back") == 0) {
		back();
	} else if (element->target[0] == '@') {
		end(element->target);
	} else if (strncmp(element->target, "ask:", 4) == 0) {
		strcpy(state.asked, element->target + 4);
		lay_over("ask");
	} else {
		show(element->target); /* nothing, if it is no screen */
	}
}

static void print_quoted(FILE *file, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&': fputs("&amp;", file); break;
		case '<': fputs("&lt;", file); break;
		case '>': fputs("&gt;", file); break;
		case '"': fputs("&quot;", file); break;
		default: fputc(*text, file);
		}
	}
}

/* As AOSP's AccessibilityNodeInfoDumper writes it. */
static int uiautomator(int argc, char **argv)
{
	const struct element *elements;
	const char *package;
	int count = shown(&elements, &package);

	if (argc < 3 || strcmp(argv[1], "dump") != 0) {
		fprintf(stderr, "Usage: uiautomator dump FILE\n");
		return 1;
	}
	FILE *file = fopen(argv[2], "w");
	if (!file) {
		printf("ERROR: could not write %s\n", argv[2]);
		return 0;
	}
	fprintf(file, "<?xml version='1.0' encoding='UTF-8' standalone='yes' ?>"
		      "<hierarchy rotation=\"0\">");
	for (int i = 0; i < count; i++) {
		const struct element *e = &elements[i];
		const char *touched = strcmp(e->target, "none") == 0 ? "false" : "true";
		fprintf(file, "<node index=\"%d\" text=\"", i);
		print_quoted(file, e->text);
		fprintf(file,
			"\" resource-id=\"%s:id/%s\" class=\"android.widget.%s\" package=\"%s\""
			" content-desc=\"\" checkable=\"false\" checked=\"false\" clickable=\"%s\""
			" enabled=\"true\" focusable=\"%s\" focused=\"false\" scrollable=\"false\""
			" long-clickable=\"false\" password=\"false\" selected=\"false\""
			" bounds=\"[0,%d][%d,%d]\" />",
			package, e->name, e->kind, package, touched, touched, TOP + ROW * i,
			WIDTH, TOP + ROW * (i + 1));
	}
	fprintf(file, "</hierarchy>");
	fclose(file);
	printf("UI hierchary dumped to: %s\n", argv[2]);
	return 0;
}

static int am(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "force-stop") == 0) {
		stop(argv[2]);
		return 0;
	}
	if (argc < 4 || strcmp(argv[1], "start") != 0 || strcmp(argv[argc - 2], "-n") != 0) {
		fprintf(stderr, "Error: Unknown command\n");
		return 255;
	}
	char package[MAX_NAME] = "", activity[MAX_NAME] = "";
	sscanf(argv[argc - 1], "%63[^/]/%63s", package, activity);
	printf("Starting: Intent { cmp=%s }\n", argv[argc - 1]);
	if (strcmp(activity, ".Main") != 0 || !launch(package)) {
		printf("Error type 3\nError: Activity class {%s} does not exist.\n",
		       argv[argc - 1]);
		return 1;
	}
	printf("Status: ok\nLaunchState: COLD\nActivity: %s\nTotalTime: 1\nWaitTime: 1\nComplete\n",
	       argv[argc - 1]);
	return 0;
}

static int pm(int argc, char **argv)
{
	if (argc != 3 || strcmp(argv[1], "path") != 0)
		return 255;
	if (!load_app(argv[2], &app))
		return 1;
	printf("package:/data/app/%s/base.apk\n", argv[2]);
	return 0;
}

static int input(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";

	if (strcmp(verb, "tap") == 0 && argc == 4)
		tap(atoi(argv[2]), atoi(argv[3]));
	else if (strcmp(verb, "keyevent") == 0 && argc == 3) {
		if (strcmp(argv[2], "KEYCODE_BACK") == 0 || strcmp(argv[2], "4") == 0)
			back();
		else if (strcmp(argv[2], "KEYCODE_HOME") == 0 && is_over(""))
			lay_over("home");
	} else if (!(strcmp(verb, "text") == 0 && argc == 3) &&
		   !(strcmp(verb, "swipe") == 0 && argc >= 6)) {
		fprintf(stderr, "Error: Unknown command: %s\n", verb);
		return 255;
	}
	return 0;
}

/* xorshift64*: the same events for the same seed, on every machine. */
static uint64_t random_state;

static int drawn(int below)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (int)((random_state * 0x2545F4914F6CDD1DULL >> 33) % (uint64_t)below);
}

static int monkey(int argc, char **argv)
{
	const char *package = "";
	int throttle = 0, count = argc > 1 ? atoi(argv[argc - 1]) : 0;
	long seed = 0;
	bool launcher = false;

	for (int i = 1; i + 1 < argc; i++) {
		if (strcmp(argv[i], "-p") == 0)
			package = argv[i + 1];
		else if (strcmp(argv[i], "-s") == 0)
			seed = atol(argv[i + 1]);
		else if (strcmp(argv[i], "--throttle") == 0)
			throttle = atoi(argv[i + 1]);
		else if (strcmp(argv[i], "-c") == 0)
			launcher = true;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!load_app(package, &app)) {
		printf("** No activities found to run, monkey aborted.\n");
		return 0;
	}
	stop(package);
	launch(package);
	if (launcher && count == 1) {
		printf("Events injected: 1\n");
		return 0;
	}
	random_state = 0x9E3779B97F4A7C15ULL ^ (uint64_t)seed;
	printf(":Monkey: seed=%ld count=%d\n:AllowPackage: %s\n", seed, count, package);
	int injected = 0;
	for (; injected < count; injected += 2) {
		/* One of twenty is a key, as by default. */
		if (drawn(20) == 0) {
			printf(":Sending Key (ACTION_DOWN): 4    // KEYCODE_BACK\n");
			back();
			printf(":Sending Key (ACTION_UP): 4    // KEYCODE_BACK\n");
		} else {
			int x = drawn(WIDTH), y = drawn(HEIGHT);
			printf(":Sending Touch (ACTION_DOWN): 0:(%d.0,%d.0)\n", x, y);
			tap(x, y);
			printf(":Sending Touch (ACTION_UP): 0:(%d.0,%d.0)\n", x, y);
		}
		if (is_over("crash") || is_over("anr")) {
			printf("// %s: %s (pid 1)\n", is_over("crash") ? "CRASH" : "NOT RESPONDING",
			       package);
			stop(package);
		}
		if (is_over("home"))
			launch(package);
		save_state(&state);
		usleep((useconds_t)throttle * 1000);
	}
	printf("Events injected: %d\n:Dropped: keys=0 pointers=0 trackballs=0 flips=0 rotations=0\n"
	       "// Monkey finished\n",
	       injected);
	return 0;
}

static int getevent(int argc, char **argv)
{
	if (argc > 1 && strchr(argv[1], 'p')) {
		printf("add device 1: " DEVICE "\n  name:     \"stand-in touch screen\"\n  events:\n"
		       "    KEY (0001): BTN_TOUCH\n");
		const char *axes[] = {"ABS_MT_POSITION_X", "ABS_MT_POSITION_Y"};
		for (int i = 0; i < 2; i++)
			printf("    %s%-22s: value 0, min 0, max %d, fuzz 0, flat 0, resolution 0\n",
			       i ? "            " : "ABS (0003): ", axes[i], AXIS_MAX);
		printf("  input props:\n    INPUT_PROP_DIRECT\n");
		return 0;
	}
	/* What fingers write from now on, until somebody ends this. */
	FILE *file = fopen(path_of("tmp/android/touches"), "a+");
	char line[256];
	if (!file)
		return 1;
	fseek(file, 0, SEEK_END);
	printf("add device 1: " DEVICE "\n");
	for (;;) {
		while (fgets(line, sizeof(line), file))
			fputs(line, stdout);
		fflush(stdout);
		clearerr(file);
		usleep(20000);
	}
}

static void write_event(FILE *file, const char *kind, const char *code, const char *value)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	fprintf(file, "[%8ld.%06ld] " DEVICE ": %-12s %-20s %-20s\n", (long)now.tv_sec,
		now.tv_nsec / 1000, kind, code, value);
}

static int finger(int argc, char **argv)
{
	FILE *file = fopen(path_of("tmp/android/touches"), "a");
	char x[9], y[9];

	if (argc != 3 || !file)
		return 1;
	snprintf(x, sizeof(x), "%08x", (unsigned)atoi(argv[1]) * (AXIS_MAX + 1U) / WIDTH + 1);
	snprintf(y, sizeof(y), "%08x", (unsigned)atoi(argv[2]) * (AXIS_MAX + 1U) / HEIGHT + 1);
	write_event(file, "EV_ABS", "ABS_MT_TRACKING_ID", "00000001");
	write_event(file, "EV_KEY", "BTN_TOUCH", "DOWN");
	write_event(file, "EV_ABS", "ABS_MT_POSITION_X", x);
	write_event(file, "EV_ABS", "ABS_MT_POSITION_Y", y);
	write_event(file, "EV_SYN", "SYN_REPORT", "00000000");
	write_event(file, "EV_ABS", "ABS_MT_TRACKING_ID", "ffffffff");
	write_event(file, "EV_KEY", "BTN_TOUCH", "UP");
	write_event(file, "EV_SYN", "SYN_REPORT", "00000000");
	fclose(file);
	tap(atoi(argv[1]), atoi(argv[2]));
	return 0;
}

static int wm(int argc, char **argv)
{
	if (argc != 2 || strcmp(argv[1], "size") != 0)
		return 255;
	printf("Physical size: %dx%d\n", WIDTH, HEIGHT);
	return 0;
}

static int dumpsys(int argc, char **argv)
{
	const struct element *elements;
	const char *package;

	(void)argc, (void)argv;
	shown(&elements, &package);
	printf("  mCurrentFocus=Window{1 u0 %s/%s.Main}\n", package, package);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*program)(int, char **);
	} programs[] = {{"am", am},	    {"pm", pm},		    {"input", input},
			{"wm", wm},	    {"monkey", monkey},	    {"uiautomator", uiautomator},
			{"finger", finger}, {"getevent", getevent}, {"dumpsys", dumpsys}};
	const char *slash = strrchr(argv[0], '/'), *name = slash ? slash + 1 : argv[0];

	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		if (strcmp(programs[i].name, name) != 0)
			continue;
		load_state(&state);
		int status = programs[i].program(argc, argv);
		save_state(&state);
		return status;
	}
	return run_process(name);
}
