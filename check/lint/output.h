// Findings as people and machines read them.
#pragma once

#include <string>

#include "check/lint/lint.h"
#include "nlohmann/json.hpp"

namespace wavetank::check {

// A paragraph for each finding: place, code, message; cause, remedy and incident below.
std::string FindingsText(const LintResult& result);
nlohmann::ordered_json FindingsJson(const LintResult& result);
// SARIF 2.1.0, as code hosts annotate pull requests by. They show no result without a place: what has none in a file is
// told of `mesh`, the file or folder that was checked; its object is named either way.
nlohmann::ordered_json FindingsSarif(const LintResult& result, std::string_view version, const std::string& mesh);
// A test case for each rule, failed where it found something.
std::string FindingsJunit(const LintResult& result);

}  // namespace wavetank::check
