// What a log store answers to a query: Loki's HTTP API (query_range), "Response format", streams.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wavetank::importing {

// One stream's lines as kubectl's --prefix prints them, so that whose they are is told; in the order of their times,
// however the query was sorted.
struct StoredLines {
  std::string pod;  // empty: no label tells
  std::string text;
};

// By a file's beginning.
bool LooksLikeLogStore(std::string_view head);
// Empty: it is none, or holds no line.
std::vector<StoredLines> ReadLogStore(std::string_view text);

}  // namespace wavetank::importing
