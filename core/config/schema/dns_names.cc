#include "core/config/schema/dns_names.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "core/base/ip.h"

namespace wavetank::config {
namespace {

constexpr size_t kLongestName = 255;

bool AreDnsLabels(std::vector<std::string> labels) {
  if (labels.size() > 1 && labels.back().empty()) labels.pop_back();
  return std::all_of(labels.begin(), labels.end(), [](const std::string& label) { return IsDnsLabel(label); });
}

// As the rest of a name after its first label, it may also be nothing.
bool AreDnsLabelsOfAName(std::string_view text) {
  const std::vector<std::string> labels = absl::StrSplit(std::string(text), '.');
  int number = 0;
  if (absl::SimpleAtoi(labels.back(), &number)) return false;
  return text.empty() || AreDnsLabels(labels);
}

}  // namespace

bool IsDnsLabel(std::string_view text) {
  const auto alphanumeric = [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)); };
  return !text.empty() && text.size() <= 63 && alphanumeric(text.front()) && alphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return c == '-' || alphanumeric(c); });
}

bool IsDomainName(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && AreDnsLabelsOfAName(text);
}

bool IsWildcardDomain(std::string_view text) {
  if (text.empty() || text.size() > kLongestName) return false;
  const size_t dot = text.find('.');
  std::string_view first = text.substr(0, dot);
  if (first.size() > 63) return false;
  if (first != "*") {
    if (first.starts_with("*-")) {
      first.remove_prefix(2);
    } else if (first.starts_with('*')) {
      first.remove_prefix(1);
    }
    if (!IsDnsLabel(first)) return false;
  }
  return dot == std::string_view::npos || AreDnsLabelsOfAName(text.substr(dot + 1));
}

bool IsTrustDomain(std::string_view text) {
  return !text.empty() && AreDnsLabels(absl::StrSplit(std::string(text), '.'));
}

bool IsHostAndPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  std::string_view host = text.substr(0, colon);
  const bool brackets = host.size() > 1 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  if (!brackets && host.find(':') != std::string_view::npos) return false;
  int port = 0;
  if (!absl::SimpleAtoi(std::string(text.substr(colon + 1)), &port) || port < 1 || port > 65535) return false;
  return IsDomainName(host) || IsIpAddress(std::string(host));
}

}  // namespace wavetank::config
