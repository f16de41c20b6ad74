#define STEP(x) ({ int _x = (x); _x > 5 ? other(_x) : _x * 2; })
extern int other(int value);

static inline int clamp_to(int value, int limit)
{
	if (value > limit)
		return limit;
	return value < 0 ? 0 : value;
}
