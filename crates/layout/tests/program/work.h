unsigned mix(unsigned value);
unsigned work(unsigned value, int rounds);
void report(const char *what, int number);
