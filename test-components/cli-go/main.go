// Fetcher fetches nothing: it is a command line as Go's own flag package makes it, and prints as JSON what that made of its
// arguments.
package main

import (
	"flag"
	"os"
	"strconv"
	"strings"
	"time"
)

func main() {
	// Not flag.CommandLine, which names itself after argv[0] and so after the file.
	flags := flag.NewFlagSet("fetcher", flag.ExitOnError)
	retries := flags.Int("retries", 3, "how often to `try` again")
	port := flags.Uint("port", 443, "port to connect to")
	keep := flags.Bool("keep", false, "keep what is incomplete")
	cache := flags.Bool("cache", true, "use the cache")
	timeout := flags.Duration("timeout", 30*time.Second, "give up after this time")
	output := flags.String("o", "", "write to `file`")
	rate := flags.Float64("rate", 1.5, "requests per second")
	var headers []string
	flags.Func("header", "`name: value` to send; may be repeated", func(text string) error {
		headers = append(headers, text)
		return nil
	})
	// ExitOnError: prints what is wrong and ends with 2, or with 0 if help was asked for.
	_ = flags.Parse(os.Args[1:])
	if flags.NArg() == 0 {
		os.Stderr.WriteString("fetcher: no URL given\n")
		os.Exit(3)
	}

	// By hand, because encoding/json would double the size of the program.
	fields := []string{
		`"retries":` + strconv.Itoa(*retries),
		`"port":` + strconv.FormatUint(uint64(*port), 10),
		`"keep":` + strconv.FormatBool(*keep),
		`"cache":` + strconv.FormatBool(*cache),
		`"timeout":` + strconv.Quote(timeout.String()),
		`"output":` + strconv.Quote(*output),
		`"rate":` + strconv.FormatFloat(*rate, 'g', -1, 64),
		`"headers":` + list(headers),
		`"args":` + list(flags.Args()),
	}
	os.Stdout.WriteString("{" + strings.Join(fields, ",") + "}\n")
}

func list(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = strconv.Quote(text)
	}
	return "[" + strings.Join(quoted, ",") + "]"
}
