// SPDX-License-Identifier: GPL-2.0
/*
 * Runs cases and times them.
 *
 *   kload=ROUNDS[,CASE...]   on the command line: runs the cases, all without a name, before the
 *                            first process, prints a result line for each and powers off
 *   /sys/kernel/debug/kload/cases   the names, a line each
 *   /sys/kernel/debug/kload/run     write "CASE ROUNDS", then read the result line
 *
 * A result line has least_cycles, those of the shortest round of `batch` operations: what disturbs a
 * round only makes it longer. Cycles are of the time-stamp counter, and of the generic timer on
 * arm64. If what the rounds left was checked, the line ends with its sum.
 */
#define pr_fmt(fmt) "kload: " fmt

#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/fs_struct.h>
#include <linux/init.h>
#include <linux/kernel.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/reboot.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/string.h>
#include <linux/timex.h>
#include <linux/uaccess.h>

#include "kload.h"

#define MAX_ROUNDS 1000000

static const struct kload_case * const groups[] = {
	kload_files, kload_sockets, kload_tasks, kload_memory,
};

static int prepared;
static char command_line[256];

/* The debugfs file's: the last result line, and who may change it. */
static DEFINE_MUTEX(lock);
static char result[192];

static u64 cycles_now(void)
{
#if defined(CONFIG_X86) || defined(CONFIG_UML_X86)
	u32 low, high;

	/* User-Mode Linux has no get_cycles(). */
	asm volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high) : : "memory");
	return (u64)high << 32 | low;
#else
	return get_cycles();
#endif
}

static const struct kload_case *find_case(const char *name)
{
	const struct kload_case *one;
	int i;

	for (i = 0; i < ARRAY_SIZE(groups); i++)
		for (one = groups[i]; one->name; one++)
			if (!strcmp(one->name, name))
				return one;
	return NULL;
}

/* Writes a result line without its newline. */
static int run_case(const struct kload_case *one, unsigned int rounds, bool check, char *line,
		    size_t size)
{
	u64 least = U64_MAX, start, cycles;
	u32 sum = 0;
	unsigned int i;
	ktime_t began;
	int error = prepared, end;

	if (!error && one->prepare)
		error = one->prepare();
	if (error) {
		snprintf(line, size, "case=%s check=failed error=%d", one->name, -error);
		return error;
	}
	began = ktime_get();
	for (i = 0; !error && i < rounds; i++) {
		start = cycles_now();
		error = one->round(one->batch);
		cycles = cycles_now() - start;
		least = min(least, cycles);
		cond_resched();
	}
	began = ktime_sub(ktime_get(), began);
	check = check && one->check;
	if (!error && check)
		error = one->check(&sum);
	if (one->finish)
		one->finish();
	if (error) {
		snprintf(line, size, "case=%s check=failed error=%d", one->name, -error);
		return error;
	}
	end = scnprintf(line, size,
			"case=%s operations=%llu elapsed_ns=%lld check=ok batch=%u rounds=%u least_cycles=%llu",
			one->name, (u64)rounds * one->batch, ktime_to_ns(began), one->batch, rounds,
			least);
	if (check)
		scnprintf(line + end, size - end, " sum=%u", sum);
	return 0;
}

struct order {
	const struct kload_case *one;
	unsigned int rounds;
	bool check;
	int error;
	struct completion done;
};

static int run_order(void *data)
{
	struct order *order = data;

	/* Where kernel threads have a root of their own, which is empty, paths need that of init. */
#ifdef scoped_with_init_fs
	scoped_with_init_fs()
#endif
		order->error = run_case(order->one, order->rounds, order->check, result,
					sizeof(result));
	complete(&order->done);
	return 0;
}

/* In a kernel thread, whoever asks for it: cases need one that has no user memory. */
static int run_in_thread(const struct kload_case *one, unsigned int rounds, bool check)
{
	struct order order = { one, rounds, check };
	struct task_struct *thread;

	init_completion(&order.done);
	thread = kthread_run(run_order, &order, "kload");
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	wait_for_completion(&order.done);
	return order.error;
}

static ssize_t run_write(struct file *file, const char __user *from, size_t count, loff_t *at)
{
	const struct kload_case *one;
	char text[64], *name = text;
	unsigned int rounds;
	char *number;
	int error;

	if (count >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, from, count))
		return -EFAULT;
	text[count] = '\0';
	number = strim(name);
	name = strsep(&number, " ");
	one = find_case(name);
	if (!one)
		return -ENOENT;
	if (!number || kstrtouint(number, 10, &rounds) || !rounds || rounds > MAX_ROUNDS)
		return -EINVAL;
	mutex_lock(&lock);
	/* A single round is a trial. Whoever orders more may count what the kernel does meanwhile. */
	error = run_in_thread(one, rounds, rounds == 1);
	mutex_unlock(&lock);
	return error ?: count;
}

static int run_show(struct seq_file *seq, void *unused)
{
	mutex_lock(&lock);
	if (result[0])
		seq_printf(seq, "%s\n", result);
	mutex_unlock(&lock);
	return 0;
}

static int run_open(struct inode *inode, struct file *file)
{
	return single_open(file, run_show, NULL);
}

static const struct file_operations run_operations = {
	.owner = THIS_MODULE,
	.open = run_open,
	.read = seq_read,
	.write = run_write,
	.llseek = seq_lseek,
	.release = single_release,
};

static int cases_show(struct seq_file *seq, void *unused)
{
	const struct kload_case *one;
	int i;

	for (i = 0; i < ARRAY_SIZE(groups); i++)
		for (one = groups[i]; one->name; one++)
			seq_printf(seq, "%s\n", one->name);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(cases);

static int __init remember(char *text)
{
	strscpy(command_line, text, sizeof(command_line));
	return 1;
}
__setup("kload=", remember);

static void __init run_and_print(const struct kload_case *one, unsigned int rounds)
{
	if (run_in_thread(one, rounds, true) == -ENOMEM && !result[0])
		snprintf(result, sizeof(result), "case=%s check=failed error=%d", one->name, ENOMEM);
	pr_info("%s\n", result);
}

static void __init run_from_command_line(void)
{
	const struct kload_case *one;
	char *rest = command_line, *word = strsep(&rest, ",");
	unsigned int rounds;
	int i;

	if (kstrtouint(word, 10, &rounds) || !rounds || rounds > MAX_ROUNDS) {
		pr_err("error: kload=%s does not begin with a number of rounds\n", word);
		return;
	}
	if (!rest) {
		for (i = 0; i < ARRAY_SIZE(groups); i++)
			for (one = groups[i]; one->name; one++)
				run_and_print(one, rounds);
	}
	while ((word = strsep(&rest, ","))) {
		one = find_case(word);
		if (one)
			run_and_print(one, rounds);
		else
			pr_err("error: no case %s\n", word);
	}
	if (!IS_ENABLED(CONFIG_KLOAD_DISK))
		pr_info("left out: the cases of ext4, without CONFIG_KLOAD_DISK\n");
	pr_info("done\n");
}

static int __init kload_init(void)
{
	struct dentry *directory = debugfs_create_dir("kload", NULL);

	debugfs_create_file("cases", 0400, directory, NULL, &cases_fops);
	debugfs_create_file("run", 0600, directory, NULL, &run_operations);
	prepared = kload_files_init() ?: kload_sockets_init();
	if (IS_ENABLED(CONFIG_KLOAD_DISK) && !prepared)
		prepared = kload_disk_init();
	if (prepared)
		pr_err("error: cannot prepare (%d)\n", -prepared);
	if (command_line[0]) {
		run_from_command_line();
		kernel_power_off();
	}
	return 0;
}
late_initcall_sync(kload_init);
