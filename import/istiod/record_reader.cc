#include "import/istiod/record_reader.h"

#include <algorithm>
#include <utility>

#include "core/base/json_access.h"
#include "core/base/json_text.h"

namespace wavetank::importing {
namespace {

// Of a message of several lines.
constexpr size_t kMaxMessage = 1 << 20;

// RFC 3629, but for its ranges of code points: whether each lead byte has as many bytes behind it as it says.
bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) continue;
    const size_t behind = lead >= 0xc2 && lead < 0xe0   ? 1
                          : lead >= 0xe0 && lead < 0xf0 ? 2
                          : lead >= 0xf0 && lead < 0xf5 ? 3
                                                        : 0;
    if (behind == 0 || i + behind >= text.size()) return false;
    for (size_t k = 1; k <= behind; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
    }
    i += behind;
  }
  return true;
}

bool IsLevel(std::string_view word) {
  return word == "info" || word == "warn" || word == "error" || word == "debug" || word == "fatal";
}

bool IsScope(std::string_view word) {
  return !word.empty() && word.size() <= 40 && word[0] >= 'a' && word[0] <= 'z' &&
         std::all_of(word.begin(), word.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                  c == '.' || c == '/';
         });
}

// With --log_caller: "xds/ads.go:175"
bool IsCaller(std::string_view word) {
  const size_t at = word.find(".go:");
  return at != word.npos && word.find(' ') == word.npos && at + 4 < word.size();
}

bool IsLabels(std::string_view word) {
  const size_t equals = word.find('=');
  return equals != word.npos && equals > 0 && word.find(' ') > equals;
}

// A time of istiod's text form and the tab behind it, which ends at `tab`. npos: none.
size_t HeadBefore(std::string_view line, size_t tab) {
  for (const size_t length : {size_t{27}, size_t{24}, size_t{20}, size_t{30}}) {
    if (tab < length || line[tab - 1] != 'Z') continue;
    if (ParseWall(line.substr(tab - length, length)) != kNoTime) return tab - length;
  }
  return line.npos;
}

std::string_view NextField(std::string_view& rest) {
  const size_t tab = rest.find('\t');
  const std::string_view field = rest.substr(0, tab);
  rest = tab == rest.npos ? std::string_view() : rest.substr(tab + 1);
  return field;
}

// What istiod prints on several lines says so at the end of the first.
bool Announces(std::string_view message) {
  return !message.empty() && (message.back() == '{' || message.back() == ':' || message.back() == '[');
}

}  // namespace

std::string_view LogRecord::Label(std::string_view key) const {
  for (size_t found = labels.find(key); found != labels.npos; found = labels.find(key, found + 1)) {
    const size_t end = found + key.size();
    if ((found != 0 && labels[found - 1] != ' ') || end >= labels.size() || labels[end] != '=') continue;
    // A value may hold blanks; the next label's name and its equals sign end it.
    std::string_view value = labels.substr(end + 1);
    for (size_t blank = value.find(' '); blank != value.npos; blank = value.find(' ', blank + 1)) {
      const std::string_view next = value.substr(blank + 1);
      const size_t equals = next.find('=');
      if (equals != next.npos && equals > 0 && next.find(' ') > equals) return value.substr(0, blank);
    }
    return value;
  }
  return {};
}

RecordReader::RecordReader(std::string file, Refusals& refusals, Sink sink)
    : file_(std::move(file)), refusals_(refusals), sink_(std::move(sink)) {}

bool RecordReader::LooksLikeRecord(std::string_view line) {
  if (line.starts_with('{')) return line.find("\"level\":") != line.npos && line.find("\"msg\":") != line.npos;
  const size_t tab = line.find('\t');
  if (tab == line.npos || HeadBefore(line, tab) != 0) return false;
  std::string_view rest = line.substr(tab + 1);
  return IsLevel(NextField(rest));
}

void RecordReader::Line(std::string_view line, uint64_t number, bool cut) {
  if (cut) refusals_.Add("line of more than 1 MiB, cut", {file_, number});
  if (!cut && !IsUtf8(line)) refusals_.Add("line that is not in UTF-8, read as far as it is", {file_, number});
  if (interrupted_.empty()) return Whole(line, number);
  const bool rest =
      !open_ && !line.empty() && !LooksLikeRecord(line) && interrupted_.size() + line.size() < kMaxMessage;
  if (!rest) {
    GiveUpHeldBack();
    return Whole(line, number);
  }
  const std::string joined = std::exchange(interrupted_, {}).append(line);
  Whole(joined, interrupted_at_);
}

void RecordReader::HoldBack(std::string_view head, uint64_t number) {
  GiveUpHeldBack();
  interrupted_ = head;
  interrupted_at_ = number;
}

void RecordReader::GiveUpHeldBack() {
  if (interrupted_.empty()) return;
  const std::string head = std::exchange(interrupted_, {});
  refusals_.Add("line cut short by another one", {file_, interrupted_at_}, head);
  if (head.front() != '{') ReadText(head, interrupted_at_);
}

void RecordReader::Whole(std::string_view line, uint64_t number) {
  if (line.empty()) return Continue(line, number);
  if (line.front() == '{') {
    if (ReadJson(line, number)) return;
  } else if (line.front() >= '0' && line.front() <= '9' && ReadText(line, number)) {
    return;
  }
  // A record that begins inside a line: another one was cut short there.
  for (size_t tab = line.find('\t'); tab != line.npos; tab = line.find('\t', tab + 1)) {
    const size_t head = HeadBefore(line, tab);
    if (head == line.npos || head == 0 || !LooksLikeRecord(line.substr(head))) continue;
    refusals_.Add("line cut short by another one", {file_, number}, line.substr(0, head));
    Continue(line.substr(0, head), number);
    ReadText(line.substr(head), number);
    return;
  }
  Continue(line, number);
}

bool RecordReader::ReadText(std::string_view line, uint64_t number) {
  const size_t tab = line.find('\t');
  if (tab == line.npos || tab < 20 || tab > 36) return false;
  LogRecord record;
  record.at = ParseWall(line.substr(0, tab));
  if (record.at == kNoTime) return false;
  std::string_view rest = line.substr(tab + 1);
  record.level = NextField(rest);
  if (!IsLevel(record.level)) return false;
  record.line = number;
  // Inside the rest another record may begin.
  for (size_t next = rest.find('\t'); next != rest.npos; next = rest.find('\t', next + 1)) {
    if (next == 0 || rest[next - 1] != 'Z') continue;
    const size_t head = HeadBefore(rest, next);
    if (head == rest.npos || !LooksLikeRecord(rest.substr(head))) continue;
    const std::string_view second = rest.substr(head);
    HoldBack(line.substr(0, line.size() - second.size()), number);
    ReadText(second, number);
    return true;
  }
  const std::string_view all = rest;
  const std::string_view first = NextField(rest);
  if (first.size() == all.size() || !IsScope(first) || (rest.find('\t') == rest.npos && IsLabels(rest))) {
    rest = all;
  } else {
    record.scope = first;
  }
  const std::string_view message = rest;
  if (std::string_view caller = NextField(rest); !IsCaller(caller)) rest = message;
  const size_t last = rest.rfind('\t');
  if (last != rest.npos && IsLabels(rest.substr(last + 1))) {
    record.labels = rest.substr(last + 1);
    rest = rest.substr(0, last);
  }
  record.message = rest;
  Begin(record, line);
  return true;
}

bool RecordReader::ReadJson(std::string_view line, uint64_t number) {
  if (!LooksLikeRecord(line)) return false;
  if (const size_t second = line.find("{\"level\":", 1); second != line.npos && ParseJson(line).is_discarded()) {
    Flush();
    HoldBack(line.substr(0, second), number);
    Whole(line.substr(second), number);
    return true;
  }
  const nlohmann::json json = ParseJson(line);
  if (!json.is_object()) return false;
  LogRecord record;
  record.at = ParseWall(wavetank::Text(json, "time"));
  if (record.at == kNoTime) return false;
  json_level_ = wavetank::Text(json, "level");
  json_scope_ = wavetank::Text(json, "scope");
  json_message_ = wavetank::Text(json, "msg");
  json_labels_.clear();
  for (const auto& [key, value] : json.items()) {
    if (key == "time" || key == "level" || key == "scope" || key == "msg" || key == "caller" || key == "stack")
      continue;
    if (!json_labels_.empty()) json_labels_ += ' ';
    json_labels_ += key + "=" + (value.is_string() ? value.get<std::string>() : JsonText(value));
  }
  record.level = json_level_;
  record.scope = json_scope_;
  record.message = json_message_;
  record.labels = json_labels_;
  record.line = number;
  Flush();
  announced_ = false;
  ++records_;
  sink_(record);
  return true;
}

void RecordReader::Begin(const LogRecord& record, std::string_view line) {
  (void)line;
  Flush();
  ++records_;
  announced_ = Announces(record.message);
  if (!announced_) return sink_(record);
  level_ = record.level;
  scope_ = record.scope;
  message_ = record.message;
  labels_ = record.labels;
  held_ = record;
  open_ = true;
}

void RecordReader::Continue(std::string_view line, uint64_t number) {
  if (open_) {
    if (message_.size() + line.size() < kMaxMessage) message_.append("\n").append(line);
    return;
  }
  if (line.empty() || announced_) return;
  // A stack trace, or the rest of a message whose beginning is in another file.
  refusals_.Add(records_ == 0 ? "line before the first whole one" : "line that continues no message", {file_, number},
                line);
}

void RecordReader::Flush() {
  if (!open_) return;
  open_ = false;
  held_.level = level_;
  held_.scope = scope_;
  held_.message = message_;
  held_.labels = labels_;
  sink_(held_);
}

void RecordReader::Finish() {
  GiveUpHeldBack();
  Flush();
}

}  // namespace wavetank::importing
