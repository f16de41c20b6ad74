/*
 * Loads kernel modules in the order of a list, whose lines are the name of one and those of the
 * modules that it needs. Its file lies beside the list, as NAME.ko.
 *
 * Prints one line for each module: `absent NAME` if it drives what is not there, or needs a module
 * that is absent, otherwise `loaded NAME`, then `section NAME SECTION ADDRESS` for its code. Any
 * other module that does not load ends the program with status 1 and one line that says why, in the
 * kernel's words if it has any.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LINE_LIMIT 4096
#define PATH_LIMIT 512
/* More than a kernel has. */
#define ABSENT_LIMIT 65536
/* The kernel's log has no longer records. */
#define RECORD_LIMIT 8192

/* The names of the modules that are absent, each between blanks. */
static char absent_names[ABSENT_LIMIT] = " ";

/* A line without its end; false at the end of the list. */
static bool next_line(FILE *list, char *line, size_t size)
{
	if (fgets(line, (int)size, list) == NULL)
		return false;
	line[strcspn(line, "\n")] = '\0';
	return line[0] != '\0';
}

static void keep_absent(const char *name)
{
	const size_t used = strlen(absent_names);

	printf("absent %s\n", name);
	snprintf(absent_names + used, sizeof(absent_names) - used, "%s ", name);
}

static bool is_absent(const char *name)
{
	char word[PATH_LIMIT];

	snprintf(word, sizeof(word), " %s ", name);
	return strstr(absent_names, word) != NULL;
}

/* The kernel's log from here on, or -1 where it has none. */
static int log_from_now(void)
{
	const int log = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (log >= 0)
		lseek(log, 0, SEEK_END);
	return log;
}

/*
 * The last line of the log that names the module, after its prefix; an empty string if there is
 * none. A record is `level,number,time,flags;text`.
 */
static const char *last_word(int log, const char *name)
{
	static char kept[RECORD_LIMIT];
	char record[RECORD_LIMIT];
	ssize_t got;

	kept[0] = '\0';
	while (log >= 0 && ((got = read(log, record, sizeof(record) - 1)) > 0 || errno == EPIPE)) {
		if (got <= 0)
			continue; /* records were overwritten before they were read */
		record[got] = '\0';
		char *text = strchr(record, ';');
		if (text == NULL)
			continue;
		text[strcspn(text, "\n")] = '\0';
		if (strstr(text, name) != NULL)
			strcpy(kept, text + 1);
	}
	return kept;
}

static void print_sections(const char *name)
{
	char path[PATH_LIMIT];
	char address[32];

	snprintf(path, sizeof(path), "/sys/module/%s/sections", name);
	DIR *sections = opendir(path);
	if (sections == NULL)
		return; /* CONFIG_KALLSYMS is not set */
	for (struct dirent *entry; (entry = readdir(sections)) != NULL;) {
		/* What the kernel frees after initialisation is somebody else's by now. */
		if (strstr(entry->d_name, "text") == NULL || strncmp(entry->d_name, ".init", 5) == 0)
			continue;
		snprintf(path, sizeof(path), "/sys/module/%s/sections/%s", name, entry->d_name);
		FILE *file = fopen(path, "re");
		if (file != NULL && fgets(address, sizeof(address), file) != NULL)
			printf("section %s %s %s", name, entry->d_name, address);
		if (file != NULL)
			fclose(file);
	}
	closedir(sections);
}

/* Whether a module began and refused: the kernel's own errors mean a module that is not sound. */
static bool is_refusal(int error)
{
	switch (error) {
	case ENODEV:
	case ENXIO:
	case EOPNOTSUPP: /* kvm_intel on another processor */
	case EPERM:      /* ptp_vmw on another hypervisor */
	case EAGAIN:     /* tcrypt never stays */
		return true;
	default:
		return false;
	}
}

static bool load(const char *directory, const char *name)
{
	char path[PATH_LIMIT];

	snprintf(path, sizeof(path), "%s/%s.ko", directory, name);
	const int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0) {
		printf("%s: %s: %s\n", name, path, strerror(errno));
		return false;
	}
	const int log = log_from_now();
	const long status = syscall(SYS_finit_module, file, "", 0);
	const int error = status == 0 ? 0 : errno;
	const bool loaded = error == 0 || error == EEXIST;
	const bool absent = is_refusal(error);
	close(file);
	if (loaded) {
		printf("loaded %s\n", name);
		print_sections(name);
	} else if (absent) {
		keep_absent(name);
	} else {
		const char *why = last_word(log, name);
		printf("%s: %s%s%s\n", name, strerror(error), why[0] ? ": " : "", why);
	}
	if (log >= 0)
		close(log);
	return loaded || absent;
}

int main(int argc, char **argv)
{
	char line[LINE_LIMIT];

	if (argc != 2) {
		fputs("usage: load LIST\n", stderr);
		return 2;
	}
	FILE *list = fopen(argv[1], "re");
	if (list == NULL) {
		printf("%s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	const char *directory = dirname(argv[1]);
	while (next_line(list, line, sizeof(line))) {
		const char *name = strtok(line, " ");
		const char *need = strtok(NULL, " ");
		while (need != NULL && !is_absent(need))
			need = strtok(NULL, " ");
		if (need != NULL)
			keep_absent(name);
		else if (!load(directory, name))
			return 1;
	}
	return fclose(list) == 0 ? 0 : 1;
}
