/* Between reading a command (command.c), services (service.c), measuring (measure.c) and the
   program's words (launch.c). */
#ifndef LAUNCH_H
#define LAUNCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Below it: actions/NAME and setup/NAME (commands), run/ (state of this boot). */
extern const char *root;

/* A command as a file under actions/ or setup/ describes it. */
struct command {
	char **argv;
	char **ready_argv; /* empty: no such check */
	char **environment; /* NAME=VALUE, ends with NULL */
	const char *directory;
	const char *input;
	const char *ready_output;
	const char *account; /* the name that its numbers get; NULL if they have one */
	uid_t user;
	gid_t group;
	int ready_port; /* 0: no such check */
	int signal;	/* that stops the service */
	long limit_ms;	/* to become ready, and to stop; of an action that is measured */
	bool service;
	bool is_first; /* of the processes in a PID namespace of its own */
};

/* Read the file KIND/NAME; ends the program if that is impossible. */
struct command command_read(const char *kind, const char *name);

/* Fork, into a namespace of its own if the command says so. */
pid_t command_fork(const struct command *command);

/* Become that program: user, directory, environment, input. Returns only by ending the process. */
_Noreturn void command_become(const struct command *command, char **argv);

/* The path of a file of this boot's state. */
const char *state_path(const char *name, const char *suffix);

/* Write a whole file of state; ends the program if that is impossible. */
void state_write(const char *path, const char *text);

/* The content of a file of at most 64 KiB from its end, as text; empty if it cannot be read. */
const char *tail_of(const char *path);

/* The last line of a service's output that is not empty, or "no output". */
const char *last_line_of(const char *name);

int service_start(const char *name, const struct command *command);
int service_stop(const char *name, const struct command *command);

/* Run an action between marks, print a result line and then what it wrote; returns its status. */
int measure_action(const char *name, const struct command *command);

/* Report a service that ended by itself, or a setup that failed; false if all is well. */
bool setup_is_broken(void);

/* Print why, and end with the status that a shell gives when it cannot run a program. */
_Noreturn void fail(const char *what, const char *which);

#endif
