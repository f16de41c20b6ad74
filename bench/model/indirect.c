/* Objects of eight kinds, whose methods are called through tables. */
#include "work.h"

enum { OBJECTS = 3000 };

struct object;
struct methods {
	uint64_t (*weigh)(const struct object *object);
	void (*grow)(struct object *object, uint64_t by);
};
struct object {
	const struct methods *methods;
	uint64_t size, age;
};

#define KIND(n, weight, growth)                                                 \
	static uint64_t weigh_##n(const struct object *object)                  \
	{                                                                       \
		const uint64_t size = object->size, age = object->age;          \
		return weight;                                                  \
	}                                                                       \
	static void grow_##n(struct object *object, uint64_t by)                \
	{                                                                       \
		object->age++;                                                  \
		object->size growth;                                            \
	}                                                                       \
	static const struct methods kind_##n = {weigh_##n, grow_##n};
KIND(0, size + age, += by)
KIND(1, size ^ age, ^= by)
KIND(2, size * 3 + age, += by * 2)
KIND(3, size > age ? size - age : age, += by & 7)
KIND(4, size >> (age & 7), = object->size * 5 + by)
KIND(5, (size & 0xffff) * (age | 1), ^= by << 3)
KIND(6, age + (size & 1), += by > 100)
KIND(7, size & 1 ? age : size, += by % 11)

static const struct methods *const kinds[] = {&kind_0, &kind_0, &kind_0, &kind_0, &kind_0, &kind_1,
					      &kind_1, &kind_2, &kind_3, &kind_4, &kind_5, &kind_6,
					      &kind_7, &kind_0, &kind_0, &kind_1};
static struct object objects[OBJECTS];

uint64_t work(uint64_t seed)
{
	uint64_t state = seed, sum = 0;

	for (size_t i = 0; i < OBJECTS; i++)
		objects[i] = (struct object){kinds[draw(&state) % 16], i, 0};
	for (int i = 0; i < 60000; i++) {
		struct object *object = &objects[draw(&state) % OBJECTS];
		object->methods->grow(object, sum & 0xff);
		sum += object->methods->weigh(object);
	}
	return sum;
}
