/* Runs a program between marks: what it makes the kernel do is an interval. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "marks.h"

int main(int argc, char **argv)
{
	int status = 1;

	if (argc < 2)
		return 2;
	mepof_mark_start();
	const pid_t child = fork();
	if (child == 0) {
		execv(argv[1], argv + 1);
		_exit(127);
	}
	if (child > 0)
		waitpid(child, &status, 0);
	mepof_mark_stop();
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
