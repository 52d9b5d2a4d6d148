// `warns` does what it is asked, and complains on the standard error: only the exit code tells whether it failed.

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        puts("Usage: warns [--json]\n"
             "Print a result, and warnings beside it.\n"
             "\n"
             "Options:\n"
             "  --json      print the result as JSON\n"
             "  -h, --help  print this help");
        return 0;
    }
    fputs("warning: the cache is cold\n", stderr);
    fputs("error: this is no error, the exit code says so\n", stderr);
    puts(argc == 2 && strcmp(argv[1], "--json") == 0 ? "{\"answer\":42}" : "The answer is 42.");
    return 0;
}
