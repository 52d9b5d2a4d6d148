// `files` does one thing to a file each: a program for WASI 0.1 that tries to leave the directories it was given.

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Each gets the arguments after its name and returns whether it succeeded, with errno set where it did not.
typedef bool run(char **arguments);

static bool read_file(char **arguments) {
    char bytes[4096];
    size_t count;
    FILE *file = fopen(arguments[0], "r");
    if (!file) return false;
    while ((count = fread(bytes, 1, sizeof bytes, file)) > 0) fwrite(bytes, 1, count, stdout);
    return !ferror(file);
}

static bool write_file(char **arguments) {
    FILE *file = fopen(arguments[0], "w");
    return file && fputs(arguments[1], file) >= 0 && fclose(file) == 0;
}

static int not_a_dot(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static bool list_directory(char **arguments) {
    struct dirent **entries;
    int count = scandir(arguments[0], &entries, not_a_dot, alphasort);
    for (int i = 0; i < count; i++) puts(entries[i]->d_name);
    return count >= 0;
}

static bool make_symlink(char **arguments) {
    return symlink(arguments[0], arguments[1]) == 0;
}

static bool rename_file(char **arguments) {
    return rename(arguments[0], arguments[1]) == 0;
}

static bool link_file(char **arguments) {
    return link(arguments[0], arguments[1]) == 0;
}

static bool remove_file(char **arguments) {
    return remove(arguments[0]) == 0;
}

static bool show_stat(char **arguments) {
    struct stat found;
    if (stat(arguments[0], &found) != 0) return false;
    const char *kind = S_ISDIR(found.st_mode) ? "directory" : S_ISREG(found.st_mode) ? "regular-file" : "other";
    printf("%s %lld\n", kind, (long long)found.st_size);
    return true;
}

static const struct command {
    const char *name;
    const char *arguments;
    const char *summary;
    int count;
    run *run;
} commands[] = {
    {"read", "<PATH>", "Print a file", 1, read_file},
    {"write", "<PATH> <TEXT>", "Create or empty a file, then write the text", 2, write_file},
    {"list", "<PATH>", "Print the names in a directory", 1, list_directory},
    {"symlink", "<TARGET> <PATH>", "Make a symbolic link at PATH that names TARGET", 2, make_symlink},
    {"rename", "<OLD> <NEW>", "Give a file another name", 2, rename_file},
    {"link", "<OLD> <NEW>", "Give a file a second name", 2, link_file},
    {"remove", "<PATH>", "Remove a file or an empty directory", 1, remove_file},
    {"stat", "<PATH>", "Print the kind and the size of what a path leads to", 1, show_stat},
};
enum { COMMANDS = sizeof commands / sizeof commands[0] };

static bool asks_for_help(const char *argument) {
    return strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0;
}

static void print_help(void) {
    puts("Do one thing to a file\n"
         "\n"
         "Usage: files <COMMAND>\n"
         "\n"
         "Commands:");
    for (int i = 0; i < COMMANDS; i++) printf("  %-8s %s\n", commands[i].name, commands[i].summary);
    puts("\n"
         "Options:\n"
         "  -h, --help  Print help");
}

static void print_command_help(const struct command *command) {
    printf("%s\n\nUsage: files %s %s\n\n", command->summary, command->name, command->arguments);
    puts("Options:\n  -h, --help  Print help");
}

int main(int argc, char **argv) {
    if (argc == 2 && asks_for_help(argv[1])) {
        print_help();
        return 0;
    }
    for (int i = 0; argc > 1 && i < COMMANDS; i++) {
        const struct command *command = &commands[i];
        if (strcmp(argv[1], command->name) != 0) continue;
        if (argc == 3 && asks_for_help(argv[2])) {
            print_command_help(command);
            return 0;
        }
        if (argc - 2 != command->count) break;
        if (command->run(argv + 2)) return 0;
        fprintf(stderr, "files: %s: %s\n", command->name, strerror(errno));
        return 1;
    }
    fputs("files: wrong arguments; see files --help\n", stderr);
    return 1;
}
