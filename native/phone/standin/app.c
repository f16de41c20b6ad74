/*
 * Apps of a virtual phone: their descriptions, and a process each, which does what its screens do.
 *
 *	package org.example.mail
 *	screen inbox -
 *	work files 20
 *	  LinearLayout row message Hello there
 *	  Button up back Up
 *
 * A screen has a name and what happens when it is shown: `-`, `@crash` or `@anr`. `work` is what the
 * app asks of the kernel then (work.c). An element has a class, a name, a target and a text. The
 * target is a screen, `-`, `none` for what cannot be touched, `back`, `@crash`, `@anr`, `@exit`, or
 * `ask:SCREEN`, before which a permission is asked for. The first screen is where the app starts.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "standin.h"

enum { STARTS = 200 };

/* Milliseconds until an app does not respond: 5 s, as on Android; tests do not wait as long. */
static int patience(void)
{
	const char *given = getenv("STANDIN_PATIENCE");

	return given ? atoi(given) : 5000;
}

const char *path_of(const char *format, ...)
{
	static char paths[8][512];
	static int next;
	char *path = paths[next++ % 8];
	const char *root = getenv("STANDIN_ROOT");
	int used = snprintf(path, sizeof(paths[0]), "%s/", root ? root : "");
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(path + used, sizeof(paths[0]) - (size_t)used, format, arguments);
	va_end(arguments);
	return path;
}

bool load_app(const char *package, struct app *app)
{
	char line[512];
	FILE *file;

	if (strchr(package, '/') || !(file = fopen(path_of("system/apps/%s", package), "r")))
		return false;
	memset(app, 0, sizeof(*app));
	while (fgets(line, sizeof(line), file)) {
		char first[MAX_NAME], second[MAX_NAME], third[MAX_NAME], text[MAX_NAME] = "";
		int words = sscanf(line, "%63s %63s %63s %63[^\n]", first, second, third, text);

		if (words < 2 || first[0] == '#')
			continue;
		struct screen *last = &app->screens[app->screen_count ? app->screen_count - 1 : 0];
		if (strcmp(first, "package") == 0) {
			strcpy(app->package, second);
		} else if (strcmp(first, "screen") == 0 && words >= 3 &&
			   app->screen_count < MAX_SCREENS) {
			last = &app->screens[app->screen_count++];
			strcpy(last->name, second);
			strcpy(last->enter, third);
			last->element = app->element_count;
			last->work = app->work_count;
		} else if (app->screen_count == 0 || words < 3) {
			continue;
		} else if (strcmp(first, "work") == 0 && app->work_count < MAX_WORKS) {
			struct work *work = &app->works[app->work_count++];
			strcpy(work->kind, second);
			work->amount = atoi(third);
			last->works++;
		} else if (app->element_count < MAX_ELEMENTS) {
			struct element *element = &app->elements[app->element_count++];
			strcpy(element->kind, first);
			strcpy(element->name, second);
			strcpy(element->target, third);
			strcpy(element->text, text);
			last->elements++;
		}
	}
	fclose(file);
	return app->screen_count > 0 && strcmp(app->package, package) == 0;
}

const struct screen *screen_of(const struct app *app, const char *name)
{
	for (int i = 0; i < app->screen_count; i++)
		if (strcmp(app->screens[i].name, name) == 0)
			return &app->screens[i];
	return NULL;
}

static struct sockaddr_un address_of(const char *package)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	snprintf(address.sun_path, sizeof(address.sun_path), "%s",
		 path_of("tmp/android/%s", package));
	return address;
}

static int connected(const char *package)
{
	struct sockaddr_un address = address_of(package);
	int client = socket(AF_UNIX, SOCK_STREAM, 0);

	if (client >= 0 && connect(client, (struct sockaddr *)&address, sizeof(address)) == 0)
		return client;
	close(client);
	return -1;
}

bool start_process(const char *package)
{
	stop_process(package);
	pid_t child = fork();
	if (child == 0) {
		setsid();
		/* What it would write, adb would wait for. */
		if (!freopen("/dev/null", "r+", stdin) || dup2(0, 1) < 0 || dup2(0, 2) < 0)
			_exit(70);
		/* Its first word is what pidof looks for. */
		execl("/proc/self/exe", package, (char *)NULL);
		_exit(70);
	}
	for (int i = 0; child > 0 && i < STARTS; i++) {
		int client = connected(package);
		if (client >= 0) {
			close(client);
			return true;
		}
		usleep(10000);
	}
	return false;
}

/* The process of an app, 0 if it has none. */
static int process_of(const char *package)
{
	FILE *file = fopen(path_of("tmp/android/%s.pid", package), "r");
	int process = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%d", &process) != 1 || process <= 1)
		process = 0;
	fclose(file);
	return process;
}

bool is_alive(const char *package)
{
	int process = process_of(package);

	return process && kill(process, 0) == 0;
}

void stop_process(const char *package)
{
	int process = process_of(package);

	if (process)
		kill(process, SIGKILL);
	unlink(path_of("tmp/android/%s.pid", package));
	unlink(path_of("tmp/android/%s", package));
}

bool tell_process(const char *package, const char *screen)
{
	int client = connected(package);
	char answer = 0;

	if (client < 0)
		return false;
	struct pollfd ready = {.fd = client, .events = POLLIN};
	ssize_t sent = send(client, screen, strlen(screen), MSG_NOSIGNAL);
	if (sent > 0 && poll(&ready, 1, patience()) == 1 && read(client, &answer, 1) != 1)
		answer = 0;
	close(client);
	return answer == '+';
}

int run_process(const char *package)
{
	static struct app app;
	struct sockaddr_un address = address_of(package);
	int server = socket(AF_UNIX, SOCK_STREAM, 0);
	FILE *file = fopen(path_of("tmp/android/%s.pid", package), "w");

	if (!load_app(package, &app) || server < 0 || !file)
		return 70;
	fprintf(file, "%d\n", getpid());
	fclose(file);
	unlink(address.sun_path);
	if (bind(server, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(server, 8) != 0)
		return 70;
	for (;;) {
		char name[MAX_NAME] = "";
		int client = accept(server, NULL, NULL);
		if (client < 0)
			return 70;
		if (read(client, name, sizeof(name) - 1) > 0) {
			if (strcmp(name, "@crash") == 0)
				raise(SIGSEGV);
			if (strcmp(name, "@exit") == 0) {
				unlink(path_of("tmp/android/%s.pid", package));
				return 0;
			}
			while (strcmp(name, "@anr") == 0)
				pause();
			const struct screen *screen = screen_of(&app, name);
			for (int i = 0; screen && i < screen->works; i++)
				do_work(&app.works[screen->work + i]);
			(void)!write(client, "+", 1);
		}
		close(client);
	}
}
