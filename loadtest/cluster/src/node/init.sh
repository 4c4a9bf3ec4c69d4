# The first process of a node's namespaces: it gives the node folders of its own where programs know but one, and buries
# processes that have lost their parents. When it ends, the kernel ends all others and undoes every mount.
set -eu
folder=$1

# /proc is still the machine's, and tells which number this process has there.
read -r id _ </proc/self/stat
mount -t proc proc /proc

# Sockets and locks stand in /run. What is written to /var is kept there too, while all that was there can still be read;
# the folder of the node is on a disk.
mount -t tmpfs tmpfs /run
mkdir /run/var /run/work /run/folder
mount --bind "$folder" /run/folder
mount -t overlay -o lowerdir=/var,upperdir=/run/var,workdir=/run/work overlay /var
mount --bind /run/folder "$folder"

# A kubelet sets these for the whole machine, unless it finds them set.
pretend() {
    name=/run/$(echo "$1" | tr / -)
    echo "$2" >"$name"
    mount --bind "$name" "/proc/sys/$1"
}
pretend vm/overcommit_memory 1
pretend vm/panic_on_oom 0
pretend kernel/panic 10
pretend kernel/panic_on_oops 1
pretend kernel/keys/root_maxkeys 1000000
pretend kernel/keys/root_maxbytes 25000000

echo "$id" >"$folder/id.new"
mv "$folder/id.new" "$folder/id"
# Whatever is killed inside, this goes on.
while :; do sleep 86400 || :; done
