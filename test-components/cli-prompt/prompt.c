// `prompt` asks a question whatever its arguments, as programs do that were written for people only.

#include <stdio.h>
#include <string.h>

int main(void) {
    char name[256];
    fputs("Name? ", stdout);
    fflush(stdout);
    if (!fgets(name, sizeof name, stdin)) {
        fputs("no name\n", stderr);
        return 1;
    }
    name[strcspn(name, "\n")] = '\0';
    printf("Hello, %s!\n", name);
    return 0;
}
