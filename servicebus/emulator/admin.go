package emulator

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"azsqloutbox/servicebus/emulator/internal/atom"
)

// admin answers an operation of the service's administration: reading the
// namespace, an entity, a rule or a list of them.
// https://learn.microsoft.com/rest/api/servicebus/
func (s *Server) admin(w http.ResponseWriter, q *http.Request) {
	answer, status, detail := s.administer(q)
	if status != http.StatusOK {
		s.cfg.Logger.Debug("admin operation refused", zap.String("path", q.URL.Path), zap.Int("status", status), zap.String("detail", detail))
		answer = atom.Error{Code: status, Detail: detail}
	}
	body, err := atom.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/atom+xml;type="+kindOf(answer)+";charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func kindOf(answer any) string {
	if _, ok := answer.(atom.Feed); ok {
		return "feed"
	}
	return "entry"
}

func (s *Server) administer(q *http.Request) (answer any, status int, detail string) {
	target := strings.Trim(q.URL.Path, "/")
	if status := s.faults.onAdmin(strings.ToLower(target)); status != 0 {
		return nil, status, "scripted: " + http.StatusText(status)
	}
	if err := s.mayManage(q.Header.Get("Authorization"), strings.ToLower(target)); err != nil {
		return nil, http.StatusUnauthorized, err.Error()
	}
	if q.Method != http.MethodGet {
		return nil, http.StatusNotImplemented, q.Method + " is not modelled: entities are configured, not made"
	}
	reader := &adminReader{server: s, request: q, id: "https://" + q.Host + q.URL.RequestURI()}
	answer, err := reader.read(target)
	switch {
	case err != nil:
		return nil, http.StatusInternalServerError, err.Error()
	case answer == nil:
		return nil, http.StatusNotFound, fmt.Sprintf("Entity '%s' was not found", target)
	}
	return answer, http.StatusOK, ""
}

// mayManage is why the token in an Authorization header does not allow to look
// at a target, nil if it does.
func (s *Server) mayManage(token, target string) error {
	rights := Rights(0)
	switch {
	case token == "":
		return errors.New("MissingToken: the request has no Authorization header")
	case strings.HasPrefix(token, "SharedAccessSignature "):
		var err error
		if rights, _, err = s.policies.checkSAS(token, target); err != nil {
			return err
		}
	default:
		if _, err := checkJWT(strings.TrimPrefix(token, "Bearer "), time.Now()); err != nil {
			return err
		}
		rights = s.cfg.EntraRights
	}
	if !rights.allow(RightManage) {
		return errors.New("Manage,EntityRead claims required for this operation")
	}
	return nil
}

// page cuts from a list what $skip and $top ask for, and says where the rest of
// it is, if there is any; the service gives out 100 at most.
func page[T any](q *http.Request, all []T) (cut []T, rest url.Values) {
	query := q.URL.Query()
	number := func(name string) int {
		n, err := strconv.Atoi(query.Get(name))
		if err != nil || n < 0 {
			return 0
		}
		return n
	}
	skip, top := min(number("$skip"), len(all)), min(cmp.Or(number("$top"), 100), 100)
	if end := skip + top; end < len(all) {
		query.Set("$skip", strconv.Itoa(end))
		query.Set("$top", strconv.Itoa(top))
		return all[skip:end], query
	}
	return all[skip:], nil
}
