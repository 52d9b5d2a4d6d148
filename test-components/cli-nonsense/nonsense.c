// `nonsense` answers whoever asks for help with text that is none. With any other arguments it prints them.

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0)) {
        puts("Lorem ipsum dolor sit amet -- consectetur - adipiscing elit,\n"
             "--- sed do eiusmod --tempor incididunt: ut labore\n"
             "  -et dolore      magna aliqua.\n"
             "  - ut enim       ad minim veniam\n"
             "    --            quis nostrud\n"
             "Options are not something that we, or you, have - duis aute <irure [dolor.\n"
             "Commands:\n"
             "\n"
             "\t-\x1b[31m-in\x1b[0m reprehenderit   ]] in voluptate=velit...\n"
             "Usage");
        return 0;
    }
    for (int i = 0; i < argc; i++)
        puts(argv[i]);
    return 0;
}
