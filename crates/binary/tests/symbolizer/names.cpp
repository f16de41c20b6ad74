// Functions whose linkage names differ from their names, and whose declarations stand apart.
volatile int sink;

namespace kernel {
struct Queue {
	int head = 0;
	int push(int value);
	int twice(int value) { return push(value) + push(value + 1); }
	template <typename T> T widen(T value) { return value * 2 + head; }
};

int Queue::push(int value)
{
	sink = value;
	return head += value > 3 ? value : 1;
}

namespace {
inline int hidden(int value)
{
	return value ^ sink;
}
}
}

int work(kernel::Queue &queue, int value)
{
	auto again = [&](int times) { return queue.widen<long>(times) + kernel::hidden(times); };
	return queue.twice(value) + again(value) + again(value + 2);
}

extern "C" void _start()
{
	kernel::Queue queue;
	work(queue, 4);
	for (;;)
		sink = 1;
}
