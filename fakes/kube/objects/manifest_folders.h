// The folders below a folder of manifests, which are not read: as `kubectl apply -f` without --recursive.
#pragma once

#include <string>
#include <vector>

namespace wavetank::fakekube {

// Those, at any depth, that hold a .yaml, .yml or .json file with an object, in order; of a file none. Hidden folders
// are left out.
std::vector<std::string> FoldersLeftOut(const std::string& path);

// "DIR/base", "DIR/base and 2 more"; empty: there is none.
std::string NameFoldersLeftOut(const std::string& path);

}  // namespace wavetank::fakekube
