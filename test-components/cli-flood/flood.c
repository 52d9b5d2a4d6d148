// `flood` writes to the standard output without end, unless told how many lines to write.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        puts("Usage: flood [--lines N]\n"
             "Write lines for ever.\n"
             "\n"
             "Options:\n"
             "  --lines N  stop after N lines\n"
             "  --help     print this help");
        return 0;
    }
    long long lines = -1;
    if (argc == 3 && strcmp(argv[1], "--lines") == 0)
        lines = atoll(argv[2]);
    for (long long i = 0; i != lines; i++)
        puts("All work and no play makes Jack a dull boy.");
    return 0;
}
