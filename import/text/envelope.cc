#include "import/text/envelope.h"

#include <algorithm>
#include <set>

#include "core/base/json_access.h"
#include "core/base/json_text.h"
#include "import/evidence/evidence.h"
#include "import/text/line_splitter.h"

namespace wavetank::importing {
namespace {

// The word at the beginning, up to a blank; "" if there is none.
std::string_view FirstWord(std::string_view line) { return line.substr(0, std::min(line.find(' '), line.size())); }

bool LooksLikeTime(std::string_view word) {
  return word.size() >= 20 && word.size() <= 35 && word[4] == '-' && word[10] == 'T' && ParseWall(word) != kNoTime;
}

// Without what colours a terminal: ESC [ ... m, and without any other ESC.
bool Uncolour(std::string_view line, std::string& out) {
  if (line.find('\x1b') == line.npos) return false;
  out.clear();
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      if (i + 1 == line.size() || line[i + 1] != '[') continue;
      i += 2;
      while (i < line.size() && (line[i] < '@' || line[i] > '~')) ++i;
      continue;
    }
    out += line[i];
  }
  return true;
}

std::string_view WithoutBlanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
}

// Scopes of istiod and its agents (pkg/log, RegisterScope); any other word may be a message's first.
bool IsKnownScope(std::string_view word) {
  static const auto* const scopes = new std::set<std::string_view>{
      "ads",     "delta",      "model",   "kube",   "klog", "controllers", "status",         "validationController",
      "ca",      "serverca",   "pkica",   "sds",    "dns",  "authn",       "xdsproxy",       "validationServer",
      "cache",   "gateway",    "ingress", "secret", "wle",  "security",    "credentials",    "authorization",
      "default", "proxyagent", "monitor", "retry",  "cni",  "adsc",        "rootcertrotator"};
  return scopes->contains(word);
}

// A record whose tabs became blanks, as terminals and issues have them. False: it is none.
bool WithTabs(std::string_view line, std::string& out) {
  const std::string_view time = FirstWord(line);
  if (time.size() == line.size() || !LooksLikeTime(time)) return false;
  std::string_view rest = WithoutBlanks(line.substr(time.size()));
  const std::string_view level = FirstWord(rest);
  if (level != "info" && level != "warn" && level != "error" && level != "debug" && level != "fatal") return false;
  rest = WithoutBlanks(rest.substr(level.size()));
  out = std::string(time) + "\t" + std::string(level) + "\t";
  if (const std::string_view scope = FirstWord(rest); scope.size() < rest.size() && IsKnownScope(scope)) {
    out += std::string(scope) + "\t";
    rest = WithoutBlanks(rest.substr(scope.size()));
  }
  // Labels stood behind a tab, too; of those that are read the first is this.
  const size_t label = rest.find(" cluster=");
  out += rest.substr(0, label);
  if (label != rest.npos) {
    out.erase(out.find_last_not_of(' ') + 1);
    out += "\t" + std::string(rest.substr(label + 1));
  }
  return true;
}

// What stern puts before a line: "POD CONTAINER ".
bool IsObjectName(std::string_view word) {
  return !word.empty() && word.size() < 254 &&
         word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == word.npos;
}

}  // namespace

Unwrapped Envelope::Piece(std::string_view stream, bool last, std::string_view text) {
  auto it = pieces_.find(stream);
  if (it == pieces_.end()) {
    if (last) return {text, {}, true};
    it = pieces_.emplace(std::string(stream), std::string()).first;
  }
  if (it->second.size() < kMaxLine) it->second.append(text.substr(0, kMaxLine - it->second.size()));
  if (!last) return {{}, {}, false};
  text_ = std::move(it->second);
  pieces_.erase(it);
  return {text_, {}, true};
}

std::string_view WithoutPodPrefix(std::string_view line) {
  const size_t end = line.starts_with("[pod/") ? line.find("] ") : line.npos;
  return end == line.npos ? line : line.substr(end + 2);
}

Unwrapped Envelope::Unwrap(std::string_view line) {
  // A byte order mark, as some editors leave it.
  if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
  Unwrapped out{line, {}, true};
  // istiod's own line, by far the most frequent: a time and a tab.
  if (line.size() > 27 && line[26] == 'Z' && line[27] == '\t') return out;
  if (Uncolour(line, uncoloured_)) return Unwrap(uncoloured_);
  // kubectl logs --prefix: [pod/istiod-7d4f/discovery] line
  if (line.starts_with("[pod/")) {
    const size_t end = line.find("] ");
    const size_t slash = line.find('/', 5);
    if (end != line.npos && slash != line.npos && slash < end) {
      out.pod = line.substr(5, slash - 5);
      out.container = line.substr(slash + 1, end - slash - 1);
      line = out.line = line.substr(end + 2);
    }
  }
  if (out.pod.empty() && !line.empty() && line[0] >= 'a' && line[0] <= 'z') {
    const std::string_view pod = FirstWord(line), behind = line.substr(std::min(pod.size() + 1, line.size())),
                           container = FirstWord(behind);
    const std::string_view text = behind.substr(std::min(container.size() + 1, behind.size()));
    const std::string_view time = text.substr(0, std::min(text.find_first_of(" \t"), text.size()));
    if (IsObjectName(pod) && IsObjectName(container) && LooksLikeTime(time)) {
      out.pod = pod;
      out.container = container;
      line = out.line = text;
    }
  }
  // Docker: {"log":"...\n","stream":"stderr","time":"..."}
  if (line.starts_with("{\"log\":")) {
    const nlohmann::json json = ParseJson(line);
    if (json.is_object() && At(json, "log").is_string()) {
      std::string text = TextOf(At(json, "log"));
      const bool last = !text.empty() && text.back() == '\n';
      if (last) text.pop_back();
      const std::string stream = wavetank::Text(json, "stream", "stderr");
      const Unwrapped piece = Piece(stream, last, text);
      text_ = std::string(piece.line);
      return {text_, out.pod, piece.complete, out.container};
    }
  }
  const std::string_view first = FirstWord(line);
  if (first.size() < line.size() && LooksLikeTime(first)) {
    std::string_view rest = line.substr(first.size() + 1);
    // CRI: 2023-09-01T00:00:00.000000000Z stderr F line
    const std::string_view stream = FirstWord(rest);
    if ((stream == "stdout" || stream == "stderr") && rest.size() > stream.size() + 2) {
      const char tag = rest[stream.size() + 1];
      const char after = rest[stream.size() + 2];
      if ((tag == 'F' || tag == 'P') && (after == ' ' || after == ':')) {
        const size_t blank = rest.find(' ', stream.size() + 2);
        const std::string_view text = blank == rest.npos ? std::string_view() : rest.substr(blank + 1);
        Unwrapped piece = Piece(stream, tag == 'F', text);
        piece.pod = out.pod;
        piece.container = out.container;
        return piece;
      }
    }
    // kubectl logs --timestamps: a time more, before the line's own.
    if (rest.size() > 20 && (rest[0] == '{' || LooksLikeTime(rest.substr(0, std::min<size_t>(rest.find('\t'), 36))))) {
      out.line = rest;
    } else if (WithTabs(line, text_)) {
      out.line = text_;
    }
  }
  return out;
}

}  // namespace wavetank::importing
