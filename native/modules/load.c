/*
 * Loads kernel modules in the order of a list: lines of names, whose files are in the directory
 * of the list as NAME.ko.
 *
 * Prints one line for each module: `absent NAME` if the hardware that it drives is not there,
 * otherwise `loaded NAME`, then `section NAME SECTION ADDRESS` for its code. A module that does not
 * load ends the program with status 1 and one line that says why, in the kernel's words if it
 * has any.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAME_LIMIT 64
/* The kernel's log has no longer records. */
#define RECORD_LIMIT 8192

/* The module's name up to the end of the line; false at the end of the list. */
static bool next_name(FILE *list, char *name, size_t size)
{
	if (fgets(name, (int)size, list) == NULL)
		return false;
	name[strcspn(name, "\n")] = '\0';
	return name[0] != '\0';
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
	char path[512];
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

static bool load(const char *directory, const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s.ko", directory, name);
	const int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0) {
		printf("%s: %s: %s\n", name, path, strerror(errno));
		return false;
	}
	const int log = log_from_now();
	const long status = syscall(SYS_finit_module, file, "", 0);
	const int error = status == 0 ? 0 : errno;
	close(file);
	if (error == 0 || error == EEXIST) {
		printf("loaded %s\n", name);
		print_sections(name);
	} else if (error == ENODEV) {
		printf("absent %s\n", name);
	} else {
		const char *why = last_word(log, name);
		printf("%s: %s%s%s\n", name, strerror(error), why[0] ? ": " : "", why);
	}
	if (log >= 0)
		close(log);
	return error == 0 || error == EEXIST || error == ENODEV;
}

int main(int argc, char **argv)
{
	char path[256];
	char name[NAME_LIMIT];

	if (argc != 2) {
		fputs("usage: load DIRECTORY\n", stderr);
		return 2;
	}
	snprintf(path, sizeof(path), "%s/list", argv[1]);
	FILE *list = fopen(path, "re");
	if (list == NULL) {
		printf("%s: %s\n", path, strerror(errno));
		return 1;
	}
	while (next_name(list, name, sizeof(name)))
		if (!load(argv[1], name))
			return 1;
	return fclose(list) == 0 ? 0 : 1;
}
