/* What stands in for Android on a virtual phone: descriptions of apps, and the state of the screen. */
#ifndef STANDIN_H
#define STANDIN_H

#include <stdbool.h>

enum {
	WIDTH = 1080,
	HEIGHT = 1920,
	/* Of the first element, and between two. */
	TOP = 100,
	ROW = 60,
	MAX_SCREENS = 256,
	MAX_ELEMENTS = 4096,
	MAX_STACK = 64,
	MAX_WORKS = 1024,
	MAX_NAME = 64,
};

struct element {
	char kind[MAX_NAME];
	char name[MAX_NAME];
	char target[MAX_NAME];
	char text[MAX_NAME];
};

struct work {
	char kind[MAX_NAME];
	int amount;
};

struct screen {
	char name[MAX_NAME];
	char enter[MAX_NAME];
	int element, elements;
	int work, works;
};

struct app {
	char package[MAX_NAME];
	struct screen screens[MAX_SCREENS];
	struct element elements[MAX_ELEMENTS];
	struct work works[MAX_WORKS];
	int screen_count, element_count, work_count;
};

/* What is shown: an app's screens, the last of them on top, and what the system lays over it. */
struct state {
	char package[MAX_NAME];
	char stack[MAX_STACK][MAX_NAME];
	int depth;
	char over[MAX_NAME]; /* home, crash, anr, ask or nothing */
	char asked[MAX_NAME];
};

/* Where things are below STANDIN_ROOT; a buffer that the next call but seven overwrites. */
const char *path_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The app of a package; false if it is not installed or its description is wrong. */
bool load_app(const char *package, struct app *app);
const struct screen *screen_of(const struct app *app, const char *name);

void load_state(struct state *state);
void save_state(const struct state *state);

/* The process of an app, which does what its screens do (app.c). */
bool start_process(const char *package);
void stop_process(const char *package);
/* Show a screen; false if the process ended or does not answer. */
bool tell_process(const char *package, const char *screen);
bool is_alive(const char *package);
int run_process(const char *package);
void do_work(const struct work *work);

#endif
