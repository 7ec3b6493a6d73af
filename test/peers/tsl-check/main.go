// Command tsl-check reads searches, one a line, and prints "yes" or "no" for each: whether the grammar of the original
// accepts it.
package main

import (
	"bufio"
	"fmt"
	"os"

	"github.com/yaacov/tree-search-language/pkg/tsl"
)

func accepts(search string) (accepted bool) {
	// The listener of the original panics on some searches that do not parse.
	defer func() {
		if recover() != nil {
			accepted = false
		}
	}()
	_, err := tsl.ParseTSL(search)
	return err == nil
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if accepts(lines.Text()) {
			fmt.Println("yes")
		} else {
			fmt.Println("no")
		}
	}
}
