// `lines` prints lines of files: a command line as getopt_long and GNU's habits make it.

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Exit codes, after grep's: a host must pass each of them on.
enum { FOUND = 0, NOTHING_FOUND = 1, USAGE = 2, CANNOT_READ = 3 };

// Long options without a letter need a value that no letter has.
enum { HEX = 256, SEPARATOR, LIMIT, HELP, VERSION };

static const struct option long_options[] = {
    {"match", required_argument, NULL, 'm'},
    {"number", no_argument, NULL, 'n'},
    {"quiet", no_argument, NULL, 'q'},
    {"rot", optional_argument, NULL, 'r'},
    {"separator", required_argument, NULL, SEPARATOR},
    {"limit", required_argument, NULL, LIMIT},
    {"hex", no_argument, NULL, HEX},
    {"help", no_argument, NULL, HELP},
    {"version", no_argument, NULL, VERSION},
    {NULL, 0, NULL, 0},
};

static const char help[] =
    "Usage: lines [OPTION]... [FILE]...\n"
    "Print the lines of each FILE to standard output.\n"
    "\n"
    "With no FILE, or when FILE is -, read standard input.\n"
    "\n"
    "Mandatory arguments to long options are mandatory for short options too.\n"
    "  -m, --match=TEXT       print only lines that contain TEXT; if given more than\n"
    "                           once, those that contain any of them\n"
    "  -n, --number           number the lines\n"
    "  -q, --quiet            print nothing, only set the exit status\n"
    "  -r, --rot[=N]          rotate letters by N places; 13 if N is not given\n"
    "  -u                     convert to upper case\n"
    "      --separator=TEXT   put TEXT between number and line (default: a tab)\n"
    "      --limit=NUM        stop after NUM lines\n"
    "      --hex              number the lines in base 16\n"
    "      --help        display this help and exit\n"
    "      --version     output version information and exit\n"
    "\n"
    "Exit status:\n"
    "  0  if a line was printed,\n"
    "  1  if there was none,\n"
    "  2  if an option is wrong,\n"
    "  3  if a FILE cannot be read.\n"
    "\n"
    "Examples:\n"
    "  lines -n notes.txt    Print notes.txt with numbers.\n"
    "  lines --rot - f       Rotate standard input, then f.\n";

static const char *matches[16];
static int match_count;
static bool number, quiet, upper, hex;
static int rotation;
static const char *separator = "\t";
static long limit = -1;
static long printed;

static long parse_number(const char *option, const char *text) {
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || *text == '\0' || *end != '\0' || value < 0) {
        fprintf(stderr, "lines: invalid number for %s: '%s'\n", option, text);
        exit(USAGE);
    }
    return value;
}

static void parse_options(int argc, char **argv) {
    int option;
    while ((option = getopt_long(argc, argv, "m:nqr::u", long_options, NULL)) != -1) {
        switch (option) {
        case 'm':
            if (match_count == sizeof matches / sizeof *matches) {
                fprintf(stderr, "lines: too many --match\n");
                exit(USAGE);
            }
            matches[match_count++] = optarg;
            break;
        case 'n': number = true; break;
        case 'q': quiet = true; break;
        case 'r': rotation = optarg ? parse_number("--rot", optarg) % 26 : 13; break;
        case 'u': upper = true; break;
        case SEPARATOR: separator = optarg; break;
        case LIMIT: limit = parse_number("--limit", optarg); break;
        case HEX: hex = true; break;
        case HELP: fputs(help, stdout); exit(EXIT_SUCCESS);
        case VERSION: puts("lines 1.2.3"); exit(EXIT_SUCCESS);
        default:
            // getopt has said what is wrong.
            fprintf(stderr, "Try 'lines --help' for more information.\n");
            exit(USAGE);
        }
    }
}

static bool wanted(const char *line) {
    for (int i = 0; i < match_count; i++)
        if (strstr(line, matches[i]))
            return true;
    return match_count == 0;
}

static char convert(char letter) {
    if (islower((unsigned char)letter))
        letter = 'a' + (letter - 'a' + rotation) % 26;
    else if (isupper((unsigned char)letter))
        letter = 'A' + (letter - 'A' + rotation) % 26;
    return upper ? (char)toupper((unsigned char)letter) : letter;
}

static void print_lines(FILE *file) {
    char *line = NULL;
    size_t size = 0;
    while (printed != limit && getline(&line, &size, file) != -1) {
        if (!wanted(line))
            continue;
        printed++;
        if (quiet)
            continue;
        if (number)
            printf(hex ? "%lx%s" : "%ld%s", printed, separator);
        for (const char *letter = line; *letter; letter++)
            putchar(convert(*letter));
    }
    free(line);
}

int main(int argc, char **argv) {
    parse_options(argc, argv);
    bool unreadable = false;
    if (optind == argc)
        print_lines(stdin);
    for (int i = optind; i < argc; i++) {
        if (strcmp(argv[i], "-") == 0) {
            print_lines(stdin);
            continue;
        }
        FILE *file = fopen(argv[i], "r");
        if (!file) {
            fprintf(stderr, "lines: %s: %s\n", argv[i], strerror(errno));
            unreadable = true;
            continue;
        }
        print_lines(file);
        fclose(file);
    }
    if (unreadable)
        return CANNOT_READ;
    return printed > 0 ? FOUND : NOTHING_FOUND;
}
