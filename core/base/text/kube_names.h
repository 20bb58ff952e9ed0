// Which texts Kubernetes takes for names, and what it says of others. How long they may be is asked apart.
// apimachinery: pkg/util/validation/validation.go
#pragma once

#include <algorithm>
#include <string_view>

namespace wavetank {

inline constexpr const char* kDnsLabelSays =
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
inline constexpr const char* kDnsSubdomainSays =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
inline constexpr const char* kDns1035LabelSays =
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')";
// Of the part behind a prefix; "name part" or "a qualified name" stands before it.
inline constexpr const char* kQualifiedNameSays =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
inline constexpr const char* kLabelValueSays =
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

inline constexpr size_t kLongestDnsLabel = 63, kLongestDnsSubdomain = 253;  // 63 of a qualified name's part, too

inline bool IsLowerLetter(char c) { return c >= 'a' && c <= 'z'; }
inline bool IsLowerOrDigit(char c) { return IsLowerLetter(c) || (c >= '0' && c <= '9'); }
inline bool IsLetterOrDigit(char c) { return IsLowerOrDigit(c) || (c >= 'A' && c <= 'Z'); }

inline bool ReadsAsDnsLabel(std::string_view text) {
  return !text.empty() && text.front() != '-' && text.back() != '-' &&
         std::all_of(text.begin(), text.end(), [](char c) { return IsLowerOrDigit(c) || c == '-'; });
}
inline bool ReadsAsDns1035Label(std::string_view text) { return ReadsAsDnsLabel(text) && IsLowerLetter(text.front()); }
inline bool ReadsAsDnsSubdomain(std::string_view text) {
  for (size_t dot = text.find('.'); dot != text.npos; dot = text.find('.')) {
    if (!ReadsAsDnsLabel(text.substr(0, dot))) return false;
    text.remove_prefix(dot + 1);
  }
  return ReadsAsDnsLabel(text);
}
// A qualified name's part.
inline bool ReadsAsQualifiedPart(std::string_view text) {
  return !text.empty() && IsLetterOrDigit(text.front()) && IsLetterOrDigit(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLetterOrDigit(c) || c == '-' || c == '_' || c == '.'; });
}
inline bool ReadsAsLabelValue(std::string_view text) { return text.empty() || ReadsAsQualifiedPart(text); }

}  // namespace wavetank
