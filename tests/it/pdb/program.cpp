// What ILC leaves in the object file of a program for Windows, in C++: mangled names, and types with these names.
//
//   clang++ --target=x86_64-pc-windows-msvc -O1 -fno-rtti -w -g -gcodeview -fstandalone-debug \
//     -fdebug-compilation-dir=. -c program.cpp -o program.obj
//   lld-link /debug /dll /noentry /nodefaultlib /brepro /pdbaltpath:program.pdb /out:program.dll program.obj

// The method table pointer is a table of virtual functions.
class Object {
    virtual void f();
};
class String : public Object {
    int _stringLength;
    unsigned short _firstChar;
};
enum lab_Lab_Color : unsigned char { Red = 1, Green = 2, Blue = 7 };
struct lab_Lab_Point {
    double X;
    double Y;
};
class lab_Lab_Animal : public Object {
    String &_name;
    int _age;
};
class lab_Lab_Dog : public lab_Lab_Animal {
    lab_Lab_Dog &Friend;
    long long _tag;
    lab_Lab_Color Colour;
    lab_Lab_Point At;
    void *Handle;
};
template <class T> class S_P_CoreLib_System_Collections_Generic_List_1 : public Object {
    T *_items;
    int _size;
};
typedef S_P_CoreLib_System_Collections_Generic_List_1<Object> List;
static_assert(sizeof(List) == 24, "asks for the instance");

// Static fields are those of types of their own.
class __type__GCSTATICSlab_Lab_Program : public Object {
    List &Keep;
};
struct __type__NONGCSTATICSlab_Lab_Program {
    int n;
    bool done;
};
class lab_Lab_Program : public Object {
    static __type__NONGCSTATICSlab_Lab_Program __NONGCSTATICS;
    static __type__GCSTATICSlab_Lab_Program *__GCSTATICS;
};

#define SYMBOL(name) __asm__(name)
extern "C" {
// Method tables, the slot of a block of static fields, and one without references.
extern const unsigned long long dog[4] SYMBOL("??_7lab_Lab_Dog@@6B@");
const unsigned long long dog[4] = {0x1234, 1, 2, 3};
extern const unsigned long long point[4] SYMBOL("??_7Boxed_lab_Lab_Point@@6B@");
const unsigned long long point[4] = {0x4321, 4, 5, 6};
extern unsigned long long program[4] SYMBOL("??_7lab_Lab_Program@@6B@");
unsigned long long program[4] = {0x5678, 7, 8, 9};
extern void *slot SYMBOL("?__GCSTATICS@lab_Lab_Program@@");
void *slot = &program;
extern __type__NONGCSTATICSlab_Lab_Program block SYMBOL("?__NONGCSTATICS@lab_Lab_Program@@");
__type__NONGCSTATICSlab_Lab_Program block = {3, true};

__declspec(dllexport) int lab_Lab_Program__Main(int n) {
    for (int i = 2; i < n; i++)
        n ^= (int)dog[i & 3];
    return n;
}

// Names for the debug information.
lab_Lab_Dog *a;
List *b;
lab_Lab_Program *c;
__type__GCSTATICSlab_Lab_Program *d;
lab_Lab_Color e;
}
