// SPDX-License-Identifier: GPL-2.0
/* Timers, work queues, and threads that wake each other. */
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

#include "kload.h"

static struct timer_list timer;
static struct work_struct work;
static unsigned long worked;
static bool leaving;
static DECLARE_COMPLETION(ping);
static DECLARE_COMPLETION(pong);

static void expire(struct timer_list *unused)
{
}

static int set_up_timer(void)
{
	timer_setup(&timer, expire, 0);
	return 0;
}

static int arm_timer(unsigned int batch)
{
	while (batch--) {
		mod_timer(&timer, jiffies + 100 * HZ);
		if (!timer_delete_sync(&timer))
			return -EIO;
	}
	return 0;
}

static void count_work(struct work_struct *unused)
{
	worked++;
}

static int set_up_work(void)
{
	INIT_WORK(&work, count_work);
	return 0;
}

static int queue_and_flush(unsigned int batch)
{
	unsigned long before = worked;
	unsigned int i;

	for (i = 0; i < batch; i++) {
		schedule_work(&work);
		flush_work(&work);
	}
	return worked - before == batch ? 0 : -EIO;
}

static int answer(void *unused)
{
	bool last;

	do {
		wait_for_completion(&ping);
		last = READ_ONCE(leaving);
		complete(&pong);
	} while (!last);
	return 0;
}

static int start_partner(void)
{
	leaving = false;
	return PTR_ERR_OR_ZERO(kthread_run(answer, NULL, "kload-partner"));
}

static int wake_partner(unsigned int batch)
{
	while (batch--) {
		complete(&ping);
		wait_for_completion(&pong);
	}
	return 0;
}

static void stop_partner(void)
{
	WRITE_ONCE(leaving, true);
	complete(&ping);
	wait_for_completion(&pong);
}

const struct kload_case kload_tasks[] = {
	{ "timer", 500, set_up_timer, arm_timer, NULL },
	{ "work", 100, set_up_work, queue_and_flush, NULL },
	{ "wake", 100, start_partner, wake_partner, stop_partner },
	{ }
};
