#include "core/debug/go_text.h"

#include <string_view>

#include "core/base/json_text.h"
#include "core/kube/time_format.h"
#include "fmt/format.h"

namespace wavetank::debug {

std::string GoText(const nlohmann::ordered_json& value, int indent) {
  const std::string text = JsonText(value, indent);
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::string_view rest = std::string_view(text).substr(i);
    if (c == '<' || c == '>' || c == '&') {  // only texts hold them
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else if (rest.starts_with("\xE2\x80\xA8") || rest.starts_with("\xE2\x80\xA9")) {
      out += rest[2] == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else if (c == '\\' && rest.size() > 1) {
      const char next = text[++i];
      out += next == 'b' ? "\\u0008" : next == 'f' ? "\\u000c" : std::string{c, next};
    } else {
      out += c;
    }
  }
  return out;
}

std::string GoTime(Time time) {
  const int64_t nanos = time.time_since_epoch().count();
  int64_t seconds = nanos / 1'000'000'000, rest = nanos % 1'000'000'000;
  if (rest < 0) {
    rest += 1'000'000'000;
    --seconds;
  }
  std::string out = kube::FormatRfc3339(kWorldEpochUnixSeconds + seconds);
  if (rest == 0) return out;
  std::string digits = fmt::format("{:09}", rest);
  while (digits.back() == '0') digits.pop_back();
  out.pop_back();  // "Z"
  return out + "." + digits + "Z";
}

std::string ByteCount(int64_t bytes) {
  if (bytes < 1000) return fmt::format("{}B", bytes);
  int64_t unit = 1000;
  int exponent = 0;
  for (int64_t n = bytes / 1000; n >= 1000; n /= 1000) {
    unit *= 1000;
    ++exponent;
  }
  return fmt::format("{:.1f}{}B", static_cast<double>(bytes) / static_cast<double>(unit), "kMGTPE"[exponent]);
}

}  // namespace wavetank::debug
