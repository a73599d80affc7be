package diagnose_test

import (
	"bytes"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"azsqloutbox/maintenance/diagnose"
)

// hostile is what an application could write into a statement's comment.
const hostile = `</td><script>alert('canary')</script><img src=x onerror=alert(1)>" onmouseover="alert(2)`

// canary is a report with hostile text wherever text from a database can be.
func canary() *diagnose.Report {
	return &diagnose.Report{
		Table: hostile, Database: diagnose.Database{Name: hostile, Engine: "SQL Server", Version: hostile},
		At: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC), Verdict: diagnose.Bad, Notes: []string{hostile},
		Sections: []diagnose.Section{{
			ID: "statements", Title: "What the statements cost", Verdict: diagnose.Bad, Reason: hostile,
			Evidence: diagnose.Evidence{
				Findings: []diagnose.Finding{{Verdict: diagnose.Bad, Text: hostile, Remedy: hostile}},
				Figures:  []diagnose.Figure{{Name: hostile, Value: hostile, Unit: diagnose.Text}},
				Gauges:   []diagnose.Gauge{{Title: hostile, Value: 2, Limit: 1, Unit: diagnose.Bytes}},
				Charts:   []diagnose.Chart{{Title: hostile, Unit: diagnose.Percent, Top: 100, Points: []diagnose.Point{{At: time.Unix(0, 0), Value: 4}, {At: time.Unix(15, 0), Value: 90}}}},
				Tables:   []diagnose.Table{{Title: hostile, Columns: []diagnose.Column{{Name: hostile, Unit: diagnose.Text}}, Rows: [][]any{{hostile}, {nil}}}},
				Notes:    []string{hostile},
			},
		}},
	}
}

func render(t testing.TB, r *diagnose.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// checkDocument parses the file and looks at every element: nothing that runs,
// nothing that loads, nothing that is left open.
func checkDocument(t *testing.T, text string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	ids := make(map[string]bool)
	var targets []string
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if slices.Contains([]string{"script", "img", "iframe", "link", "object", "embed", "video", "audio", "source", "form", "base", "use", "image"}, n.Data) {
			t.Errorf("there is a <%s>", n.Data)
		}
		for _, a := range n.Attr {
			switch {
			case a.Key == "id":
				ids[a.Val] = true
			case a.Key == "href":
				targets = append(targets, a.Val)
			case strings.HasPrefix(a.Key, "on"), a.Key == "src", a.Key == "srcset", a.Key == "action":
				t.Errorf("<%s> has the attribute %s=%q", n.Data, a.Key, a.Val)
			case a.Key == "style" && strings.Contains(a.Val, "url"):
				t.Errorf("<%s> has the style %q", n.Data, a.Val)
			}
		}
	}
	for _, target := range targets {
		if !strings.HasPrefix(target, "#") || !ids[target[1:]] {
			t.Errorf("a link leads to %q", target)
		}
	}
	if loads := regexp.MustCompile(`(?i)(url\(|@import|https?://|//[a-z])`).FindString(text); loads != "" {
		t.Errorf("the file holds %q", loads)
	}
	if !strings.Contains(text, `content="default-src 'none'; style-src 'unsafe-inline'"`) {
		t.Error("the file does not forbid itself to load anything")
	}
	if strings.Contains(text, "ZgotmplZ") {
		t.Error("the template put a value where its kind is refused")
	}
}

func TestHTMLLoadsAndRunsNothing(t *testing.T) {
	t.Run("the article", func(t *testing.T) {
		text := render(t, article(t).diagnose())
		checkDocument(t, text)
		for _, want := range []string{"does not fit in memory", "<path class=\"line\" d=\"M", "&lt;script&gt;alert(1)&lt;/script&gt;", "BC_Gen5_8"} {
			if !strings.Contains(text, want) {
				t.Errorf("the file lacks %q", want)
			}
		}
	})
	t.Run("hostile text", func(t *testing.T) {
		text := render(t, canary())
		checkDocument(t, text)
		if n := strings.Count(text, "&lt;script&gt;alert(&#39;canary&#39;)"); n < 12 {
			t.Errorf("the hostile text is shown %d times", n)
		}
	})
}

// TestInABrowser has headless Chromium draw the article's report.
func TestInABrowser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium here: apt-get install chromium")
	}
	if testing.Short() {
		t.Skip("starting a browser takes seconds")
	}
	t.Parallel()
	dir := t.TempDir()
	page, picture := filepath.Join(dir, "report.html"), filepath.Join(dir, "report.png")
	if err := os.WriteFile(page, []byte(render(t, article(t).diagnose())), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--user-data-dir="+filepath.Join(dir, "profile"),
		"--window-size=1180,1600", "--screenshot="+picture, "file://"+page)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", browser, err, out)
	}
	f, err := os.Open(picture)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	drawn, err := png.Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	colors := make(map[color.Color]bool)
	for y := 0; y < drawn.Bounds().Dy(); y += 4 {
		for x := 0; x < drawn.Bounds().Dx(); x += 4 {
			colors[drawn.At(x, y)] = true
		}
	}
	// Ink, verdicts in their tints, bars: a page without its styles has two.
	if drawn.Bounds().Dx() < 1000 || len(colors) < 50 {
		t.Errorf("the picture is %v with %d colours", drawn.Bounds(), len(colors))
	}
}
