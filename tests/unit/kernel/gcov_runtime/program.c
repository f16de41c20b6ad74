/* Instrumented work with values of every kind. */
__attribute__((noinline)) int often(int x) { return x + 1; }
__attribute__((noinline)) int seldom(int x) { return x - 1; }
__attribute__((noinline)) int never(int x) { return x * 2; }

int (*volatile targets[3])(int) = {often, seldom, never};
char from[4096], to[4096];

__attribute__((noinline)) int call(int which, int x) { return targets[which](x); }

__attribute__((noinline)) void copy(unsigned long size) { __builtin_memcpy(to, from, size); }

__attribute__((noinline)) unsigned int divide(unsigned int by)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < by; i++)
		sum += (i + 1000) % by + (i + 1000) / by;
	return sum;
}

unsigned int work(void)
{
	unsigned int sum = 0;

	for (int i = 0; i < 700; i++)
		sum += call(0, i);
	for (int i = 0; i < 30; i++)
		sum += call(1, i);
	for (int i = 0; i < 50; i++)
		copy(i % 5 ? 48 : 100);
	/* More values than a site keeps. */
	for (int i = 1; i < 90; i++)
		sum += divide(i);
	return sum;
}
